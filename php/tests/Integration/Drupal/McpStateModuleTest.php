<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Drupal;

use Drupal\Core\DependencyInjection\ContainerBuilder;
use Drupal\Core\Lock\NullLockBackend;
use Drupal\Core\Site\Settings;
use Drupal\mcp_server\Controller\McpServerController;
use Drupal\mcp_state\ModuleSettings;
use Drupal\mcp_state\ServerWithSessions;
use Drupal\mcp_state\StatusReport;
use Drupal\mcp_state\UnlockedController;
use McpState\Exception\InvalidArgument;
use McpState\Sdk\SessionManager;
use McpState\Store;
use McpState\Tests\Sdk\Support\Log;
use McpState\Tests\Support\Directory;
use PHPUnit\Framework\TestCase;
use Symfony\Component\DependencyInjection\Reference;

require_once __DIR__ . '/../autoload.php';

/** The module on Symfony's containers, which Drupal uses, with doubles of the classes of Drupal and mcp_server. */
final class McpStateModuleTest extends TestCase
{
    private const ROUTE = '\\' . McpServerController::class . '::handle';

    private string $directory;

    protected function setUp(): void
    {
        if (!\class_exists(\Symfony\Component\Yaml\Yaml::class)) {
            self::markTestSkipped('no Symfony: php-symfony-dependency-injection, -config, -yaml');
        }

        $this->directory = Directory::temporary();
    }

    protected function tearDown(): void
    {
        if (isset($this->directory)) {
            Directory::remove($this->directory);
        }
    }

    /** @dataProvider stores */
    public function testTheServerHasOurManagerWhateverStoreTheVersionHas(string $store): void
    {
        $container = $this->site(store: $store);
        $sessions = $container->get('mcp_server.server')->sessions();

        self::assertInstanceOf(SessionManager::class, $sessions);
        self::assertSame($container->get('mcp_state.session_manager'), $sessions);
        self::assertTrue($sessions->exists($sessions->create()->getId()));
        self::assertSame([$store], $container->getParameter('mcp_state.wiring')['stores']);
    }

    public static function stores(): iterable
    {
        yield ['mcp_server.database_session_store'];
        yield ['mcp_server.db_session_manager'];
        yield ['mcp_server.shared_tempstore_session_store'];
    }

    public function testEverythingElseOfTheServerStays(): void
    {
        $container = $this->site();
        [$own, $server] = [$container->get('mcp_server.server.factory')->create(), $container->get('mcp_server.server')];

        self::assertInstanceOf($own::class, $server);
        self::assertSame($own->name, $server->name);
        self::assertSame($own->protocol()->handlers(), $server->protocol()->handlers());
        self::assertNotSame($own->sessions(), $server->sessions());
    }

    public function testTheServerIsStillBuiltAnewForWhoeverAsks(): void
    {
        $container = $this->site();

        self::assertNotSame($container->get('mcp_server.server'), $container->get('mcp_server.server'));
    }

    public function testOnTheCommandLineTheServerIsLeftAsItIsUnlessAScopeIsSet(): void
    {
        $container = $this->site(['scope' => null]);

        self::assertSame('cli', \PHP_SAPI);
        self::assertNotSame($container->get('mcp_state.session_manager'), $container->get('mcp_server.server')->sessions());
        self::assertTrue((new ModuleSettings(new Settings([]), '', 'fpm-fcgi'))->isActive());
    }

    public function testAnSdkThatKeepsItsManagerElsewhereIsLeftAloneAndTheLogSaysSo(): void
    {
        $log = new Log();
        $other = new class () {
            public array $sessions = [];
        };
        $server = ServerWithSessions::wrap(
            $other,
            SessionManager::open('memory://'),
            new ModuleSettings(new Settings(['mcp_state' => ['scope' => 'worker']]), ''),
            $log,
        );

        self::assertSame($other, $server);
        self::assertTrue($log->has('replaced nothing'));
        self::assertFalse(ServerWithSessions::fits($other::class));
    }

    public function testTheControllerTakesNoLockAnyMore(): void
    {
        $container = $this->site();
        $routes = $this->routes($container, ['mcp_server.handle' => self::ROUTE, 'other' => '\Other::handle']);
        [$id, $method] = \explode(':', $routes->controllerOf('mcp_server.handle'));

        self::assertSame('handle', $method);
        self::assertSame('\Other::handle', $routes->controllerOf('other'));
        self::assertInstanceOf(McpServerController::class, $container->get($id));
        self::assertInstanceOf(NullLockBackend::class, $container->get($id)->lock);
        self::assertInstanceOf(SessionManager::class, $container->get($id)->server->sessions());
    }

    public function testTheSitesOwnLockIsNotTouched(): void
    {
        self::assertInstanceOf(SiteLock::class, $this->site()->get('lock'));
    }

    public function testAControllerThatIsAServiceTakesNoLockAnyMore(): void
    {
        $container = $this->site(prepare: static function (ContainerBuilder $container): void {
            $container->register(McpServerController::class, McpServerController::class)
                ->setArguments([new Reference('mcp_server.server'), new Reference('lock')]);
        });

        self::assertInstanceOf(NullLockBackend::class, $container->get(McpServerController::class)->lock);
        self::assertSame(self::ROUTE, $this->routes($container, ['r' => self::ROUTE])->controllerOf('r'));
        self::assertTrue($container->getParameter('mcp_state.wiring')['lock']);
    }

    public function testAControllerWithoutALockIsLeftAlone(): void
    {
        self::assertFalse(UnlockedController::takesLock(User::class));
        self::assertFalse(UnlockedController::takesLock(SessionManager::class));
        self::assertTrue(UnlockedController::takesLock(McpServerController::class));
    }

    public function testSessionsAreWhereSettingsPhpSays(): void
    {
        $id = $this->site()->get('mcp_state.session_manager')->create()->getId()->toRfc4122();

        self::assertNotNull(Store::open($this->dsn())->openSession($id));
    }

    public function testNoTwoSitesShareAStoreWithoutSayingSo(): void
    {
        $dsn = static fn (string $salt, string $path): string =>
            (new ModuleSettings(new Settings(['hash_salt' => $salt]), $path))->dsn();

        self::assertMatchesRegularExpression('#^shm://drupal-[0-9a-f]{12}$#', $dsn('a', 'sites/default'));
        self::assertSame($dsn('a', 'sites/default'), $dsn('a', 'sites/default'));
        self::assertCount(3, \array_unique([$dsn('a', 'sites/a'), $dsn('a', 'sites/b'), $dsn('b', 'sites/a')]));
    }

    public function testAMisspeltSettingIsAnErrorThatNamesIt(): void
    {
        $this->expectException(InvalidArgument::class);
        $this->expectExceptionMessage('"max_wating"');
        $this->site(['max_wating' => 3])->get('mcp_state.session_manager');
    }

    public function testAnUnknownScopeIsAnError(): void
    {
        $this->expectException(InvalidArgument::class);
        $this->site(['scope' => 'swoole'])->get('mcp_state.session_manager');
    }

    public function testASessionBelongsToTheDrupalUserWhoOpenedIt(): void
    {
        $container = $this->site();
        [$user, $sessions] = [$container->get('current_user'), $container->get('mcp_state.session_manager')];
        $user->id = 5;
        $id = $sessions->create()->getId();
        self::assertTrue($sessions->exists($id));

        foreach ([6, 0] as $other) {
            $user->id = $other;
            self::assertFalse($sessions->exists($id));
        }
    }

    public function testTheStatusReportSaysWhereSessionsAreAndWhatWasReplaced(): void
    {
        $entry = $this->status($this->site());

        self::assertSame(0, $entry['severity']);
        self::assertStringContainsString('file://', $entry['value']);
        self::assertStringContainsString('mcp_server.server was replaced', $entry['description']);
        self::assertStringContainsString('mcp_server.shared_tempstore_session_store', $entry['description']);
        self::assertStringContainsString('lock for each session was removed', $entry['description']);
    }

    public function testTheStatusReportSaysThatThereWasNothingToReplace(): void
    {
        $entry = $this->status($this->site(prepare: static function (ContainerBuilder $container): void {
            $container->removeDefinition('mcp_server.server');
        }));

        self::assertSame(1, $entry['severity']);
        self::assertSame('Nothing to replace', $entry['value']);
    }

    public function testTheStatusReportSaysWhyTheStoreCannotBeOpened(): void
    {
        $entry = $this->status($this->site(['dsn' => 'nonsense://']));

        self::assertSame(2, $entry['severity']);
        self::assertStringContainsString('nonsense', $entry['description']);
    }

    public function testTheInstallFileLetsTheModuleIntoAMachineThatCanRunIt(): void
    {
        require_once __DIR__ . '/../../../drupal/mcp_state/mcp_state.install';

        self::assertSame([], \mcp_state_requirements('install'));
        self::assertSame([], \mcp_state_requirements('update'));
    }

    /**
     * @param array<string, mixed>                   $settings
     * @param (\Closure(ContainerBuilder): void)|null $prepare
     */
    private function site(
        array $settings = [],
        ?\Closure $prepare = null,
        string $store = 'mcp_server.shared_tempstore_session_store',
    ): ContainerBuilder {
        return Site::container($settings + ['dsn' => $this->dsn(), 'scope' => 'worker'], $prepare, $store);
    }

    /** @param array<string, string> $controllers */
    private function routes(ContainerBuilder $container, array $controllers): Routes
    {
        $routes = new Routes($controllers);
        $container->get('mcp_state.route_subscriber')->onAlterRoutes($routes);

        return $routes;
    }

    /** @return array<string, mixed> */
    private function status(ContainerBuilder $container): array
    {
        $status = $container->get('mcp_state.status');
        self::assertInstanceOf(StatusReport::class, $status);

        return $status->requirements()['mcp_state'];
    }

    private function dsn(): string
    {
        return "file://$this->directory/store?durability=none";
    }
}
