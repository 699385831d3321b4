<?php

/**
 * Loads the classes of `McpState\` without Composer: `require 'php/autoload.php';`.
 *
 * A list, as Composer makes one, so that nothing is looked for. A test compares it with `src`.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    $file = [
        'McpState\BusEntries' => __DIR__ . '/src/BusEntries.php',
        'McpState\BusMessage' => __DIR__ . '/src/BusMessage.php',
        'McpState\CancelOutcome' => __DIR__ . '/src/CancelOutcome.php',
        'McpState\Claim' => __DIR__ . '/src/Claim.php',
        'McpState\Collected' => __DIR__ . '/src/Collected.php',
        'McpState\Delivery' => __DIR__ . '/src/Delivery.php',
        'McpState\Detached' => __DIR__ . '/src/Detached.php',
        'McpState\DuplicatePolicy' => __DIR__ . '/src/DuplicatePolicy.php',
        'McpState\Exception\BackendMissing' => __DIR__ . '/src/Exception/BackendMissing.php',
        'McpState\Exception\DuplicateRequestId' => __DIR__ . '/src/Exception/DuplicateRequestId.php',
        'McpState\Exception\ExceptionInterface' => __DIR__ . '/src/Exception/ExceptionInterface.php',
        'McpState\Exception\InternalError' => __DIR__ . '/src/Exception/InternalError.php',
        'McpState\Exception\InvalidArgument' => __DIR__ . '/src/Exception/InvalidArgument.php',
        'McpState\Exception\InvalidDsn' => __DIR__ . '/src/Exception/InvalidDsn.php',
        'McpState\Exception\LimitExceeded' => __DIR__ . '/src/Exception/LimitExceeded.php',
        'McpState\Exception\OutcomeUnknown' => __DIR__ . '/src/Exception/OutcomeUnknown.php',
        'McpState\Exception\OwnerExpired' => __DIR__ . '/src/Exception/OwnerExpired.php',
        'McpState\Exception\SessionExists' => __DIR__ . '/src/Exception/SessionExists.php',
        'McpState\Exception\SessionNotFound' => __DIR__ . '/src/Exception/SessionNotFound.php',
        'McpState\Exception\StoreCorrupt' => __DIR__ . '/src/Exception/StoreCorrupt.php',
        'McpState\Exception\StoreFull' => __DIR__ . '/src/Exception/StoreFull.php',
        'McpState\Exception\StoreIncompatible' => __DIR__ . '/src/Exception/StoreIncompatible.php',
        'McpState\Exception\StoreUnavailable' => __DIR__ . '/src/Exception/StoreUnavailable.php',
        'McpState\Exception\UpdateConflict' => __DIR__ . '/src/Exception/UpdateConflict.php',
        'McpState\Ffi\Engine' => __DIR__ . '/src/Ffi/Engine.php',
        'McpState\Ffi\Failure' => __DIR__ . '/src/Ffi/Failure.php',
        'McpState\Ffi\Handle' => __DIR__ . '/src/Ffi/Handle.php',
        'McpState\Ffi\Library' => __DIR__ . '/src/Ffi/Library.php',
        'McpState\Ffi\Memory' => __DIR__ . '/src/Ffi/Memory.php',
        'McpState\Ffi\RequestEnd' => __DIR__ . '/src/Ffi/RequestEnd.php',
        'McpState\Ffi\Session' => __DIR__ . '/src/Ffi/Session.php',
        'McpState\Interest' => __DIR__ . '/src/Interest.php',
        'McpState\Internal\Driver' => __DIR__ . '/src/Internal/Driver.php',
        'McpState\Internal\FailureKind' => __DIR__ . '/src/Internal/FailureKind.php',
        'McpState\Internal\Json' => __DIR__ . '/src/Internal/Json.php',
        'McpState\LateReason' => __DIR__ . '/src/LateReason.php',
        'McpState\Logiscape\SessionStore' => __DIR__ . '/src/Logiscape/SessionStore.php',
        'McpState\Logiscape\ThreeWay' => __DIR__ . '/src/Logiscape/ThreeWay.php',
        'McpState\OutgoingMessage' => __DIR__ . '/src/OutgoingMessage.php',
        'McpState\Owner' => __DIR__ . '/src/Owner.php',
        'McpState\OwnerKind' => __DIR__ . '/src/OwnerKind.php',
        'McpState\PendingInfo' => __DIR__ . '/src/PendingInfo.php',
        'McpState\PendingRequest' => __DIR__ . '/src/PendingRequest.php',
        'McpState\PendingStatus' => __DIR__ . '/src/PendingStatus.php',
        'McpState\Sdk\Internal\AtEndStream' => __DIR__ . '/src/Sdk/Internal/AtEndStream.php',
        'McpState\Sdk\Internal\ClientGone' => __DIR__ . '/src/Sdk/Internal/ClientGone.php',
        'McpState\Sdk\Internal\ElementChange' => __DIR__ . '/src/Sdk/Internal/ElementChange.php',
        'McpState\Sdk\Internal\Exchange' => __DIR__ . '/src/Sdk/Internal/Exchange.php',
        'McpState\Sdk\Internal\Http' => __DIR__ . '/src/Sdk/Internal/Http.php',
        'McpState\Sdk\Internal\Journal' => __DIR__ . '/src/Sdk/Internal/Journal.php',
        'McpState\Sdk\Internal\Key' => __DIR__ . '/src/Sdk/Internal/Key.php',
        'McpState\Sdk\Internal\Path' => __DIR__ . '/src/Sdk/Internal/Path.php',
        'McpState\Sdk\Internal\PerContext' => __DIR__ . '/src/Sdk/Internal/PerContext.php',
        'McpState\Sdk\Internal\RequestMemory' => __DIR__ . '/src/Sdk/Internal/RequestMemory.php',
        'McpState\Sdk\Internal\Sdk' => __DIR__ . '/src/Sdk/Internal/Sdk.php',
        'McpState\Sdk\Internal\Settings' => __DIR__ . '/src/Sdk/Internal/Settings.php',
        'McpState\Sdk\Internal\Share' => __DIR__ . '/src/Sdk/Internal/Share.php',
        'McpState\Sdk\Internal\Value' => __DIR__ . '/src/Sdk/Internal/Value.php',
        'McpState\Sdk\Internal\WaitingRoom' => __DIR__ . '/src/Sdk/Internal/WaitingRoom.php',
        'McpState\Sdk\Middleware\PrincipalGuard' => __DIR__ . '/src/Sdk/Middleware/PrincipalGuard.php',
        'McpState\Sdk\Middleware\RejectDuplicateRequests' => __DIR__ . '/src/Sdk/Middleware/RejectDuplicateRequests.php',
        'McpState\Sdk\Middleware\SingleUseRequestState' => __DIR__ . '/src/Sdk/Middleware/SingleUseRequestState.php',
        'McpState\Sdk\NotificationBus' => __DIR__ . '/src/Sdk/NotificationBus.php',
        'McpState\Sdk\Scope\ContextKeyed' => __DIR__ . '/src/Sdk/Scope/ContextKeyed.php',
        'McpState\Sdk\Scope\OneExchange' => __DIR__ . '/src/Sdk/Scope/OneExchange.php',
        'McpState\Sdk\Scope\Scope' => __DIR__ . '/src/Sdk/Scope/Scope.php',
        'McpState\Sdk\Scope\SequentialWorker' => __DIR__ . '/src/Sdk/Scope/SequentialWorker.php',
        'McpState\Sdk\Scope\Stdio' => __DIR__ . '/src/Sdk/Scope/Stdio.php',
        'McpState\Sdk\Session' => __DIR__ . '/src/Sdk/Session.php',
        'McpState\Sdk\SessionManager' => __DIR__ . '/src/Sdk/SessionManager.php',
        'McpState\Sdk\StreamableHttpTransport' => __DIR__ . '/src/Sdk/StreamableHttpTransport.php',
        'McpState\Session' => __DIR__ . '/src/Session.php',
        'McpState\Store' => __DIR__ . '/src/Store.php',
        'McpState\WaitResult' => __DIR__ . '/src/WaitResult.php',
        'McpState\WaitStatus' => __DIR__ . '/src/WaitStatus.php',
    ][$class] ?? null;

    if ($file !== null) {
        require $file;
    }
});
