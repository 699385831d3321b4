<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

/** Everything one process can see of the contract, on whatever store and backend the test class gives. */
trait StoreContract
{
    use SessionContract;
    use AttributeContract;
    use OwnerContract;
    use OutgoingContract;
    use PendingContract;
    use WaitContract;
    use InFlightContract;
    use BusContract;
    use LimitContract;
    use BadInputContract;
}
