<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

/** The part of the contract that one process can test, on the store and backend of the test class. */
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
