<?php

declare(strict_types=1);

namespace McpState\Example;

/** The reply as an event stream. The first write sends the headers. */
final class EventStream
{
    private bool $started = false;
    private float $lastWrite = 0.0;

    /** @param int $keepAliveMs milliseconds without output after which the stream writes a comment */
    public function __construct(private readonly int $keepAliveMs)
    {
    }

    public function message(string $json): void
    {
        $this->write("event: message\ndata: $json\n\n");
    }

    /**
     * Writes a comment if the stream has been silent for long. The comment keeps proxies from closing the stream, and
     * it is the only way to notice that the client has disconnected, because PHP checks that only when it writes.
     */
    public function keepAlive(): void
    {
        if ($this->untilKeepAlive() <= 0) {
            $this->write(": waiting\n\n");
        }
    }

    /** Returns the milliseconds until the next comment is due. */
    public function untilKeepAlive(): int
    {
        return (int) ceil($this->keepAliveMs - (microtime(true) - $this->lastWrite) * 1000);
    }

    private function write(string $text): void
    {
        if (!$this->started) {
            $this->start();
        }
        echo $text;
        flush();
        $this->lastWrite = microtime(true);
        if (connection_aborted() === 1) {
            throw new ClientGone('The client closed its event stream.');
        }
    }

    private function start(): void
    {
        $this->started = true;
        ignore_user_abort(true);
        ini_set('zlib.output_compression', '0');
        while (ob_get_level() > 0) {
            ob_end_flush();
        }
        header('Content-Type: text/event-stream');
        header('Cache-Control: no-cache');
        header('X-Accel-Buffering: no');
    }
}
