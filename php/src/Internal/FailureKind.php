<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception;
use McpState\Ffi;
use McpState\Native;

/**
 * The kinds of failure that a driver reports. {@see exception()} is the only place that turns them into public
 * exceptions.
 *
 * The numbers are those of the extension (`Native\FailureKind`) and of the C library. Their meaning never changes.
 *
 * @internal
 */
enum FailureKind: int
{
    case InvalidArgument = 1;
    case InvalidDsn = 2;
    case LimitExceeded = 3;
    case SessionNotFound = 4;
    case OwnerExpired = 5;
    case StoreUnavailable = 6;
    case StoreFull = 7;
    case StoreIncompatible = 8;
    case StoreCorrupt = 9;
    case OutcomeUnknown = 10;
    case Internal = 11;

    /** Returns the public exception for a driver's failure, which becomes its `getPrevious()`. */
    public static function exception(Native\Failure|Ffi\Failure $failure): Exception\ExceptionInterface
    {
        $message = $failure->getMessage();
        $code = (int) $failure->getCode();

        return match (self::tryFrom($code)) {
            self::InvalidArgument => new Exception\InvalidArgument($message, $code, $failure),
            self::InvalidDsn => new Exception\InvalidDsn($message, $code, $failure),
            self::LimitExceeded => new Exception\LimitExceeded(
                $message,
                $failure->limit,
                $failure->maximum,
                $failure->actual,
                $code,
                $failure,
            ),
            self::SessionNotFound => new Exception\SessionNotFound($message, $code, $failure),
            self::OwnerExpired => new Exception\OwnerExpired($message, $code, $failure),
            self::StoreUnavailable => new Exception\StoreUnavailable($message, $code, $failure),
            self::StoreFull => new Exception\StoreFull($message, $code, $failure),
            self::StoreIncompatible => new Exception\StoreIncompatible($message, $code, $failure),
            self::StoreCorrupt => new Exception\StoreCorrupt($message, $code, $failure),
            self::OutcomeUnknown => new Exception\OutcomeUnknown($message, $code, $failure),
            self::Internal => new Exception\InternalError($message, $code, $failure),
            null => new Exception\InternalError("unknown failure $code: $message", $code, $failure),
        };
    }
}
