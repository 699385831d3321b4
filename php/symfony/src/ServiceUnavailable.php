<?php

declare(strict_types=1);

namespace McpState\Symfony;

use McpState\Sdk\Internal\Unavailable;
use McpState\Sdk\SessionManager;
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
    /**
     * @param \Closure(): ?SessionManager $manager returns the manager of this process; null: it served no MCP request
     */
    public function __construct(private readonly \Closure $manager)
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

    private function sessions(): ?SessionManager
    {
        return ($this->manager)();
    }
}
