<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Drupal;

use Drupal\mcp_state\ServiceUnavailable;
use McpState\Exception\StoreUnavailable;
use McpState\Sdk\SessionManager;
use PHPUnit\Framework\TestCase;
use Symfony\Component\DependencyInjection\Container;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\HttpKernelInterface;

require_once __DIR__ . '/../autoload.php';

/** The module's response when the store refuses a client. */
final class ServiceUnavailableTest extends TestCase
{
    public function testAStoreThatRefusesASessionIs503WithRetryAfterAndOtherPagesAreLeftAlone(): void
    {
        if (!\class_exists(ResponseEvent::class) || !\class_exists(Container::class)) {
            self::markTestSkipped('no Symfony: php-symfony-dependency-injection, -http-kernel');
        }

        $container = new Container();
        $listener = new ServiceUnavailable($container);
        $status = function () use ($listener): Response {
            $event = new ResponseEvent(
                $this->createStub(HttpKernelInterface::class),
                new Request(),
                HttpKernelInterface::MAIN_REQUEST,
                new Response('a page'),
            );
            $listener->onResponse($event);

            return $event->getResponse();
        };
        self::assertSame(200, $status()->getStatusCode(), 'nothing has asked for sessions');
        $sessions = SessionManager::open('redis://127.0.0.1:1?retry_ms=1');
        $container->set('mcp_state.session_manager', $sessions);
        self::assertSame(200, $status()->getStatusCode(), 'nothing was refused');

        try {
            $sessions->create();
            self::fail('There is no store.');
        } catch (StoreUnavailable) {
            $response = $status();
        }

        self::assertSame([503, '1'], [$response->getStatusCode(), $response->headers->get('Retry-After')]);
        self::assertSame(-32603, \json_decode((string) $response->getContent(), true)['error']['code']);
    }
}
