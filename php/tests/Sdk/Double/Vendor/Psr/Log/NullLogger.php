<?php

declare(strict_types=1);

namespace Psr\Log;

class NullLogger extends AbstractLogger
{
    public function log($level, $message, array $context = [])
    {
    }
}
