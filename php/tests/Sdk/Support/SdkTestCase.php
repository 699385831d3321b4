<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Support;

use McpState\Sdk\Session;
use McpState\Sdk\SessionManager;
use McpState\Store;
use McpState\Tests\Support\Directory;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Uid\Uuid;

require_once __DIR__ . '/../autoload.php';

/**
 * Tests on a store in a directory. Each manager is one exchange, because each PHP request has its own; several managers
 * in one test are concurrent requests.
 */
abstract class SdkTestCase extends TestCase
{
    protected const COUNTER = '_mcp.request_id_counter';
    protected const QUEUE = '_mcp.outgoing_queue';
    protected const PENDING = '_mcp.pending_requests';
    protected const META = '_mcp.active_request_meta';

    protected string $directory;

    protected Log $log;

    protected function setUp(): void
    {
        $this->directory = Directory::temporary();
        $this->log = new Log();
    }

    protected function tearDown(): void
    {
        Directory::remove($this->directory);
    }

    protected function dsn(string $options = ''): string
    {
        return "file://$this->directory/store?durability=none$options";
    }

    protected function store(): Store
    {
        return Store::open($this->dsn());
    }

    /** @param mixed ...$settings of the manager, by name */
    protected function manager(mixed ...$settings): SessionManager
    {
        return new SessionManager($this->store(), ...($settings + ['logger' => $this->log]));
    }

    /** Creates a session and returns its id. */
    protected function session(mixed ...$settings): Uuid
    {
        return $this->manager(...$settings)->create()->getId();
    }

    /** Returns the object that the SDK resolves for a client's message. */
    protected function resolved(SessionManager $manager, Uuid $id): Session
    {
        $manager->gc();
        self::assertTrue($manager->exists($id));

        return $manager->createWithId($id);
    }

    /** Registers and queues a request to the client like the SDK, and returns its id. */
    protected function ask(Session $session, int $timeoutS = 60, string $message = 'question'): int
    {
        $id = $session->get(self::COUNTER, 1000);
        $session->set(self::COUNTER, $id + 1);
        $pending = $session->get(self::PENDING, []);
        $pending[$id] = ['request_id' => $id, 'timeout' => $timeoutS, 'timestamp' => \time()];
        $session->set(self::PENDING, $pending);
        $this->queue($session, \json_encode(['id' => $id, 'method' => $message]));

        return $id;
    }

    protected function queue(Session $session, string $message): void
    {
        $queue = $session->get(self::QUEUE, []);
        $queue[] = self::row($message);
        $session->set(self::QUEUE, $queue);
    }

    /** Delivers the client's answer in another request. */
    protected function answer(Uuid $session, int $id, string $answer = 'yes'): void
    {
        $resolved = $this->resolved($this->manager(), $session);
        $resolved->set("_mcp.responses.$id", self::response($id, $answer));
        $resolved->save();
    }

    /** @return array<string, mixed> */
    protected static function row(string $message): array
    {
        return ['message' => $message, 'context' => ['type' => 'notification']];
    }

    /** @return array<string, mixed> */
    protected static function response(mixed $id, string $answer = 'yes'): array
    {
        return ['jsonrpc' => '2.0', 'id' => $id, 'result' => ['answer' => $answer]];
    }

    /**
     * @param array<array-key, mixed> $entries
     *
     * @return array<int, bool> id => whether the entry is timed out
     */
    protected static function timedOut(array $entries): array
    {
        return \array_map(static fn (array $e): bool => \time() - $e['timestamp'] >= $e['timeout'], $entries);
    }

    /** Returns the contents of all files of the store. */
    protected function bytes(): string
    {
        $bytes = '';

        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($this->directory)) as $file) {
            $bytes .= $file->isFile() ? (string) \file_get_contents((string) $file) : '';
        }

        return $bytes;
    }

    protected static function eventually(\Closure $condition): void
    {
        for ($i = 0; $i < 2000; ++$i) {
            if ($condition()) {
                return;
            }

            \usleep(5000);
        }

        self::fail('The condition did not hold within ten seconds.');
    }
}
