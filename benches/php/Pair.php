<?php

declare(strict_types=1);

namespace McpState\Bench;

/**
 * One process that waits for an answer, and another that brings it. Both make an object of their own.
 */
interface Pair
{
    public function __construct(string $place);

    /** Before any process begins. */
    public static function prepare(string $place): void;

    /** The waiting side asks. What the other side needs to answer, without line breaks. */
    public function ask(): string;

    /** Returns as soon as the answer is there. */
    public function wait(): void;

    /** Takes the answer. */
    public function finish(): void;

    /** The other side answers. */
    public function answer(string $question): void;
}
