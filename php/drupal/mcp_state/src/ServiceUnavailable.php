<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use McpState\Sdk\Internal\Unavailable;
use McpState\Sdk\SessionManager;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;

/**
 * Replaces the response to an MCP request with HTTP 503, Retry-After and a JSON-RPC error if the store is unavailable
 * or full, or has no room for another session. A stream that has begun stays unchanged.
 */
final class ServiceUnavailable implements EventSubscriberInterface
{
    private const SESSIONS = 'mcp_state.session_manager';

    public function __construct(private readonly ContainerInterface $container)
    {
    }

    public static function getSubscribedEvents(): array
    {
        return [KernelEvents::RESPONSE => 'onResponse'];
    }

    public function onResponse(ResponseEvent $event): void
    {
        $refusal = $event->isMainRequest() ? $this->sessions()?->takeRefusal() : null;
        $type = (string) $event->getResponse()->headers->get('Content-Type');

        if ($refusal !== null && !\str_starts_with($type, 'text/event-stream')) {
            $event->setResponse(new JsonResponse(Unavailable::error($refusal), Unavailable::STATUS, Unavailable::HEADERS));
        }
    }

    /** Returns the manager, or null if this request created none because it serves no MCP message. */
    private function sessions(): ?SessionManager
    {
        $sessions = $this->container->initialized(self::SESSIONS) ? $this->container->get(self::SESSIONS) : null;

        return $sessions instanceof SessionManager ? $sessions : null;
    }
}
