<?php

declare(strict_types=1);

namespace McpState;

/** A snapshot of a pending request. Reading it changes nothing in the store. */
final class PendingInfo
{
    public function __construct(
        public readonly int $id,
        /** The status that a claim would have reported at the time of the snapshot. */
        public readonly PendingStatus $status,
        /** The milliseconds until the deadline; 0 unless the status is Waiting. */
        public readonly int $remainingMs,
        /** The JSON-RPC method; empty if the caller gave none. */
        public readonly string $method,
    ) {
    }

    /**
     * @internal
     *
     * @param list<array{int, int, int, string}> $rows id, status, milliseconds left, method
     *
     * @return list<self>
     */
    public static function fromRows(array $rows): array
    {
        $list = [];

        foreach ($rows as [$id, $status, $remainingMs, $method]) {
            $list[] = new self($id, PendingStatus::from($status), $remainingMs, $method);
        }

        return $list;
    }
}
