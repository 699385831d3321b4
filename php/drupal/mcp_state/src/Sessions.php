<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\Session\AccountInterface;
use McpState\Exception\InvalidArgument;
use McpState\Sdk\Scope\OneExchange;
use McpState\Sdk\Scope\SequentialWorker;
use McpState\Sdk\SessionManager;
use Psr\Log\LoggerInterface;

/** Creates the session manager of the site. */
final class Sessions
{
    public static function create(ModuleSettings $settings, AccountInterface $user, LoggerInterface $logger): SessionManager
    {
        return SessionManager::open(
            $settings->dsn(),
            ttl: $settings->get('ttl'),
            lease: $settings->get('lease'),
            logger: $logger,
            scope: match ($settings->get('scope')) {
                null => new OneExchange(),
                'worker' => new SequentialWorker(),
                default => throw new InvalidArgument("\$settings['mcp_state']['scope'] must be NULL or 'worker'"),
            },
            principal: $settings->get('bind_user', true)
                ? static fn (): ?string => $user->isAuthenticated() ? (string) $user->id() : null
                : null,
            maxWaiting: $settings->get('max_waiting'),
        );
    }
}
