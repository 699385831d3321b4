<?php

declare(strict_types=1);

namespace McpState\Bench;

/** A process that waits for an answer, and another process that delivers it. Each of them creates its own object. */
interface Pair
{
    public function __construct(string $place);

    /** Prepares the place before the processes start. */
    public static function prepare(string $place): void;

    /**
     * Asks the question on the waiting side, and returns what the other side needs to answer it, without line breaks.
     */
    public function ask(): string;

    /** Returns as soon as the answer has arrived. */
    public function wait(): void;

    /** Takes the answer. */
    public function finish(): void;

    /** Answers the question on the other side. */
    public function answer(string $question): void;
}
