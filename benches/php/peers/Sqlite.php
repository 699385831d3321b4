<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

use McpState\Bench\Content;
use McpState\Bench\Peer;

/**
 * Tables in SQLite through PDO, with a write-ahead log, one transaction for each step, and statements that are prepared
 * once.
 */
final class Sqlite implements Peer
{
    private readonly \PDO $database;
    /** @var array<string, \PDOStatement> */
    private array $statements = [];
    private string $id;
    private string $owner;

    public function __construct(string $place)
    {
        $this->database = new \PDO("sqlite:$place/sessions.sqlite");
        $this->database->exec('PRAGMA busy_timeout = 20000; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF');
        $this->database->exec('
            CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, next_request INTEGER) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS attributes (session TEXT, key TEXT, value TEXT, PRIMARY KEY (session, key));
            CREATE TABLE IF NOT EXISTS messages (sequence INTEGER PRIMARY KEY, session TEXT, owner TEXT, message TEXT);
            CREATE INDEX IF NOT EXISTS queue ON messages (session, owner, sequence);
            CREATE TABLE IF NOT EXISTS pending (session TEXT, id INTEGER, owner TEXT, deadline INTEGER, response TEXT,
                PRIMARY KEY (session, id));
        ');
    }

    public function populate(int $sessions, int $measured, int $content): void
    {
        $small = Content::attributes(1000);
        $large = Content::attributes($content);
        $this->database->beginTransaction();
        for ($number = 0; $number < $sessions; ++$number) {
            $this->run('INSERT INTO sessions VALUES (?, 1000)', Content::id($number));
            foreach ($number < $measured ? $large : $small as $key => $value) {
                $this->run('INSERT INTO attributes VALUES (?, ?, ?)', Content::id($number), $key, json_encode($value));
            }
        }
        $this->database->commit();
    }

    public function enter(int $session): void
    {
        $this->id = Content::id($session);
        $this->owner = bin2hex(random_bytes(16));
    }

    public function send(string $message): int
    {
        return $this->transaction(function () use ($message): int {
            $next = 'UPDATE sessions SET next_request = next_request + 1 WHERE id = ? RETURNING next_request';
            $id = (int) $this->value($next, $this->id);
            $this->run('INSERT INTO pending VALUES (?, ?, ?, ?, NULL)', $this->id, $id, $this->owner, time() + 60);
            $this->run('INSERT INTO messages (session, owner, message) VALUES (?, ?, ?)', $this->id, $this->owner, $message);

            return $id;
        });
    }

    public function take(): ?string
    {
        return $this->transaction(function (): ?string {
            $queue = 'SELECT message FROM messages WHERE session = ? AND owner = ? ORDER BY sequence DESC LIMIT 1';
            $message = $this->value($queue, $this->id, $this->owner);
            $this->run('DELETE FROM messages WHERE session = ? AND owner = ?', $this->id, $this->owner);

            return $message;
        });
    }

    public function deliver(int $id, string $response): bool
    {
        return $this->transaction(function () use ($id, $response): bool {
            $update = 'UPDATE pending SET response = ? WHERE session = ? AND id = ? AND response IS NULL AND deadline > ?';

            return $this->run($update, $response, $this->id, $id, time())->rowCount() === 1;
        });
    }

    public function claim(int $id): ?string
    {
        return $this->transaction(fn (): ?string => $this->value(
            'DELETE FROM pending WHERE session = ? AND id = ? AND owner = ? AND response IS NOT NULL RETURNING response',
            $this->id,
            $id,
            $this->owner,
        ));
    }

    public function get(): ?string
    {
        $json = $this->value('SELECT value FROM attributes WHERE session = ? AND key = ?', $this->id, 'client.name');

        return $json === null ? null : json_decode($json, true);
    }

    public function patch(string $name, string $version): void
    {
        $this->transaction(function () use ($name, $version): void {
            foreach (['client.name' => $name, 'client.version' => $version] as $key => $value) {
                $this->run('INSERT OR REPLACE INTO attributes VALUES (?, ?, ?)', $this->id, $key, json_encode($value));
            }
        });
    }

    private function transaction(\Closure $step): mixed
    {
        // PDO's transactions begin as readers, and two of them that then write would fail.
        $this->database->exec('BEGIN IMMEDIATE');
        $result = $step();
        $this->database->exec('COMMIT');

        return $result;
    }

    private function run(string $sql, string|int ...$values): \PDOStatement
    {
        $statement = $this->statements[$sql] ??= $this->database->prepare($sql);
        $statement->execute($values);

        return $statement;
    }

    private function value(string $sql, string|int ...$values): ?string
    {
        $statement = $this->run($sql, ...$values);
        $value = $statement->fetchColumn();
        $statement->closeCursor();

        return is_bool($value) || $value === null ? null : (string) $value;
    }
}
