<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Symfony;

use Mcp\Server\Builder;
use McpState\Exception\StoreUnavailable;
use McpState\Sdk\NotificationBus;
use McpState\Sdk\Scope\ContextKeyed;
use McpState\Sdk\Scope\Scope;
use McpState\Sdk\Scope\SequentialWorker;
use McpState\Sdk\Scope\Stdio;
use McpState\Sdk\SessionManager;
use McpState\Store;
use McpState\Tests\Support\Directory;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Config\Definition\Exception\InvalidConfigurationException;
use Symfony\Component\DependencyInjection\Container;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\HttpKernelInterface;

require_once __DIR__ . '/../autoload.php';

/** The bundle on containers like those of an application: compiled, dumped to PHP, and loaded from there. */
final class McpStateBundleTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        if (!\class_exists(ContainerBuilder::class) || !\class_exists(\Symfony\Component\HttpKernel\Bundle\Bundle::class)) {
            self::markTestSkipped('no Symfony: php-symfony-dependency-injection, -config, -http-kernel');
        }

        $this->directory = Directory::temporary();
    }

    protected function tearDown(): void
    {
        if (isset($this->directory)) {
            Directory::remove($this->directory);
        }
    }

    public function testAStoreThatRefusesASessionIs503WithRetryAfterWhateverTheControllerMadeOfIt(): void
    {
        foreach ([200, 500] as $status) {
            $container = $this->container(['dsn' => 'redis://127.0.0.1:1?retry_ms=1']);
            $listener = $container->get('mcp_state.service_unavailable');
            $respond = static function () use ($listener, $status): Response {
                $event = new ResponseEvent(
                    new class () implements HttpKernelInterface {
                        public function handle(Request $request, int $type = 1, bool $catch = true): Response
                        {
                            return new Response();
                        }
                    },
                    new Request(),
                    HttpKernelInterface::MAIN_REQUEST,
                    new Response('', $status),
                );
                $listener->onResponse($event);

                return $event->getResponse();
            };
            self::assertSame($status, $respond()->getStatusCode(), 'a page that serves no MCP request');

            try {
                $container->get(SessionManager::class)->create();
                self::fail('There is no store.');
            } catch (StoreUnavailable) {
                $response = $respond();
            }

            self::assertSame([503, '1'], [$response->getStatusCode(), $response->headers->get('Retry-After')]);
            self::assertSame(-32603, \json_decode((string) $response->getContent(), true)['error']['code']);
            self::assertSame($status, $respond()->getStatusCode(), 'the next request');
        }
    }

    public function testTheServersBuilderGetsOurManagerInPlaceOfItsStore(): void
    {
        $builder = $this->builder($this->container());

        self::assertCount(1, \array_keys(\array_column($builder->calls, 0), 'setSession', true));
        self::assertNull($builder->argumentsOf('setSession')[0]);
        self::assertInstanceOf(SessionManager::class, $builder->sessions());
        self::assertSame(['shop'], $builder->argumentsOf('setServerInfo'));
    }

    public function testTheServersOwnStoreIsNotEvenMade(): void
    {
        self::assertFalse($this->container()->has('mcp.session.store'));
    }

    public function testALockOfTheSdkIsRemoved(): void
    {
        $container = $this->container(prepare: static function (ContainerBuilder $container): void {
            $container->getDefinition('mcp.server.builder')->addMethodCall('setSessionLock', [new Reference('lock')]);
            $container->register('lock', \stdClass::class);
        });

        self::assertNull($this->builder($container)->argumentsOf('setSessionLock'));
    }

    public function testTheManagerKeepsItsSessionsWhereTheDsnSays(): void
    {
        $container = $this->container();
        $id = $this->builder($container)->sessions()->create()->getId();

        self::assertNotNull($this->store()->openSession($id->toRfc4122()));
        self::assertSame($this->store()->dsn(), $container->get(Store::class)->dsn());
        self::assertSame($this->builder($container)->sessions(), $container->get(SessionManager::class));
    }

    public function testNothingOpensTheStoreBeforeItIsNeeded(): void
    {
        $container = $this->container(['dsn' => 'nonsense://']);

        self::assertInstanceOf(SessionManager::class, $this->builder($container)->sessions());
        $this->expectException(\McpState\Exception\InvalidDsn::class);
        $this->builder($container)->sessions()->create();
    }

    public function testTheTimeToLiveIsTheSessions(): void
    {
        $sessions = $this->builder($this->container(['ttl' => 5_000]))->sessions();
        $id = $sessions->create()->getId()->toRfc4122();

        self::assertSame(5_000, $this->store()->openSession($id)->stats()['ttl_ms']);
    }

    /** @dataProvider badConfigurations */
    public function testBadConfigurationIsRefusedWhenTheContainerIsBuilt(array $config): void
    {
        $this->expectException(InvalidConfigurationException::class);
        $this->container($config);
    }

    public static function badConfigurations(): iterable
    {
        yield 'unknown key' => [['time_to_live' => 5]];
        yield 'ttl' => [['ttl' => 0]];
        yield 'max_waiting' => [['max_waiting' => -1]];
        yield 'blocking' => [['blocking' => 'often']];
    }

    public function testAnHttpRequestIsServedInTheScopeOfAWorker(): void
    {
        $container = $this->container();
        $container->get('request_stack')->push(new Request());

        self::assertInstanceOf(SequentialWorker::class, $container->get('the_scope'));
    }

    public function testTheConsoleCommandIsServedInTheScopeOfStdio(): void
    {
        self::assertInstanceOf(Stdio::class, $this->container()->get('the_scope'));
    }

    public function testTheScopeCanBeTheApplications(): void
    {
        $container = $this->container(['scope' => 'app.scope'], static function (ContainerBuilder $container): void {
            $container->register('app.scope', ContextKeyed::class)->setFactory([self::class, 'scope']);
        });

        self::assertInstanceOf(ContextKeyed::class, $container->get('the_scope'));
    }

    public static function scope(): Scope
    {
        return new ContextKeyed(static fn (): string => 'main');
    }

    public function testASessionBelongsToTheUserWhoOpenedIt(): void
    {
        $container = $this->container();
        $tokens = $container->get('security.token_storage');
        $sessions = $this->builder($container)->sessions();
        $tokens->user = 'ann';
        $id = $sessions->create()->getId();
        self::assertTrue($sessions->exists($id));

        foreach (['bob', null] as $other) {
            $tokens->user = $other;
            self::assertFalse($sessions->exists($id));
        }
    }

    public function testASessionBelongsToNobodyWhereThatIsConfigured(): void
    {
        $container = $this->container(['bind_user' => false]);
        $container->get('security.token_storage')->user = 'ann';
        $sessions = $this->builder($container)->sessions();
        $id = $sessions->create()->getId();
        $container->get('security.token_storage')->user = 'bob';

        self::assertTrue($sessions->exists($id));
    }

    public function testWithoutSecurityAndLoggerItWorksToo(): void
    {
        $container = $this->container([], static function (ContainerBuilder $container): void {
            $container->removeDefinition('security.token_storage');
            $container->removeDefinition('logger');
            $container->removeDefinition('request_stack');
        });

        self::assertNotNull($this->builder($container)->sessions()->create());
    }

    public function testTheBusIsTheServersWhereThatIsConfigured(): void
    {
        self::assertNull($this->builder($this->container())->argumentsOf('setNotificationBus'));

        $container = $this->container(['notification_bus' => true]);
        self::assertSame([$container->get(NotificationBus::class)], $this->builder($container)->argumentsOf('setNotificationBus'));
    }

    public function testABusForAnSdkThatHasNoneIsRefusedWhenTheContainerIsBuilt(): void
    {
        $this->expectExceptionMessage('mcp_state.notification_bus');
        $this->container(['notification_bus' => true], self::oldSdk(...));
    }

    public function testAnSdkWithoutAnyBusWorksToo(): void
    {
        \exec(\implode(' ', \array_map('escapeshellarg', [\PHP_BINARY, __DIR__ . '/sdk-without-bus.php'])) . ' 2>&1', $output);

        self::assertSame([SessionManager::class], $output);
    }

    public function testAnSdkThatTakesNoManagerIsRefusedWhenTheContainerIsBuilt(): void
    {
        $this->expectExceptionMessageMatches('/setSession.*sessionManager/s');
        $this->container([], self::oldSdk(...));
    }

    public function testWithoutTheBundleOfSymfonyTheServicesAreThereAllTheSame(): void
    {
        $container = $this->container([], static function (ContainerBuilder $container): void {
            $container->removeDefinition('mcp.server');
            $container->removeDefinition('mcp.server.builder');
        });

        self::assertInstanceOf(SessionManager::class, $container->get(SessionManager::class));
    }

    public function testAWorkersResetEndsTheExchange(): void
    {
        $container = $this->container();
        self::assertSame([['method' => 'release']], $container->getParameter('reset_tags'));
    }

    private static function oldSdk(ContainerBuilder $container): void
    {
        $old = new class () {
            public function setSession(?object $sessionStore = null): void
            {
            }

            public function setServerInfo(string $name): void
            {
            }
        };
        $container->getDefinition('mcp.server.builder')->setClass($old::class);
    }

    /**
     * @param array<string, mixed>                   $config
     * @param (\Closure(ContainerBuilder): void)|null $prepare
     */
    private function container(array $config = [], ?\Closure $prepare = null): Container
    {
        return Application::container($config + ['dsn' => $this->dsn()], $prepare);
    }

    private function builder(Container $container): Builder
    {
        $builder = $container->get('mcp.server.builder');
        self::assertInstanceOf(Builder::class, $builder);

        return $builder;
    }

    private function dsn(): string
    {
        return "file://$this->directory/store?durability=none";
    }

    private function store(): Store
    {
        return Store::open($this->dsn());
    }
}
