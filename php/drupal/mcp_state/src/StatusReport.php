<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use McpState\Exception\ExceptionInterface;
use McpState\Store;

/** The entries of the status report: the place of the sessions, and the replaced services. */
final class StatusReport
{
    // These are the values of Drupal's REQUIREMENT_* and, since 11.2, of RequirementSeverity.
    private const OK = 0;
    private const WARNING = 1;
    private const ERROR = 2;

    /** @param array{server?: bool, stores?: list<string>, controller?: string, lock?: bool} $wiring */
    public function __construct(private readonly ModuleSettings $settings, private readonly array $wiring)
    {
    }

    /**
     * Returns the result of hook_requirements() for the phase `runtime`.
     *
     * @return array<string, array<string, mixed>>
     */
    public function requirements(): array
    {
        if (!($this->wiring['server'] ?? false)) {
            return self::entry(
                self::WARNING,
                'Nothing to replace',
                'There is no service mcp_server.server: the module MCP Server is not enabled, or this module does not '
                . 'support its version.',
            );
        }

        if (!ServerWithSessions::fits('Mcp\Server') && !ServerWithSessions::fits('Mcp\Server\Server')) {
            return self::entry(
                self::ERROR,
                'Nothing was replaced',
                'The installed mcp/sdk keeps its session manager in an unknown property. MCP Server works with its own '
                . 'sessions.',
            );
        }

        try {
            $store = Store::open($this->settings->dsn());
            $stats = $store->stats();
        } catch (ExceptionInterface $e) {
            return self::entry(self::ERROR, 'The store cannot be opened', $e->getMessage());
        }

        $megabytes = static fn (int $bytes): string => \number_format($bytes / (1 << 20), 1) . ' MiB';

        return self::entry(
            self::OK,
            "{$stats['sessions']} sessions in {$store->dsn()}",
            "{$megabytes($stats['used_bytes'])} of {$megabytes($stats['limit_bytes'])} are used. " . $this->replaced(),
        );
    }

    private function replaced(): string
    {
        $stores = $this->wiring['stores'] ?? [];

        return \implode(' ', \array_filter([
            'The session manager of mcp_server.server was replaced'
                . ($stores === [] ? '.' : '; no longer used: ' . \implode(', ', $stores) . '.'),
            ($this->wiring['lock'] ?? false)
                ? "The controller's lock for each session was removed."
                : 'No lock was found in the controller.',
            $this->settings->isActive() ? '' : 'On the command line, MCP Server keeps its own sessions.',
        ]));
    }

    /** @return array<string, array<string, mixed>> */
    private static function entry(int $severity, string $value, string $description): array
    {
        $enum = 'Drupal\Core\Extension\Requirement\RequirementSeverity';

        return ['mcp_state' => [
            'title' => 'MCP sessions',
            'value' => $value,
            'description' => $description,
            'severity' => \enum_exists($enum) ? $enum::from($severity) : $severity,
        ]];
    }
}
