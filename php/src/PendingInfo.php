<?php

declare(strict_types=1);

namespace McpState;

/** A pending request as it stood when it was listed. Looking changes nothing. */
final class PendingInfo
{
    public function __construct(
        public readonly int $id,
        /** What a claim would have said. */
        public readonly PendingStatus $status,
        /** Milliseconds to the deadline; 0 unless the status is Waiting. */
        public readonly int $remainingMs,
        /** The JSON-RPC method, '' if it was not given. */
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
