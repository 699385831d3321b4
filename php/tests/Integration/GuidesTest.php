<?php

declare(strict_types=1);

namespace McpState\Tests\Integration;

use Drupal\Core\Site\Settings;
use Drupal\mcp_state\ModuleSettings;
use McpState\Symfony\DependencyInjection\Configuration;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Config\Definition\Processor;
use Symfony\Component\Yaml\Yaml;

require_once __DIR__ . '/autoload.php';

/** The code accepts the configuration that the guides show. */
final class GuidesTest extends TestCase
{
    protected function setUp(): void
    {
        if (!\class_exists(Yaml::class) || !\class_exists(Processor::class)) {
            self::markTestSkipped('no Symfony: php-symfony-config, -yaml');
        }
    }

    public function testTheBundleTakesTheConfigurationOfItsGuide(): void
    {
        $config = Yaml::parse(self::block('symfony.md', 'yaml'));
        $processed = (new Processor())->processConfiguration(new Configuration(), $config);

        self::assertSame(['mcp_state'], \array_keys($config));
        self::assertSame('shm://shop', $processed['dsn']);
        self::assertSame(40, $processed['max_waiting']);
    }

    public function testEveryKeyOfTheBundleIsInItsGuide(): void
    {
        $keys = \array_keys((new Processor())->processConfiguration(new Configuration(), []));

        foreach ($keys as $key) {
            self::assertMatchesRegularExpression("/^\\| [^|]*`$key`/m", self::guide('symfony.md'));
        }
    }

    public function testTheModuleTakesTheSettingsOfItsGuide(): void
    {
        $settings = [];
        eval(self::block('drupal.md', 'php'));
        $taken = new ModuleSettings(new Settings($settings), 'sites/default');

        self::assertSame('shm://shop', $taken->dsn());
        self::assertSame(40, $taken->get('max_waiting'));
        self::assertSame(3_600_000, $taken->get('ttl'));
        self::assertTrue($taken->get('bind_user'));
    }

    private static function block(string $guide, string $language): string
    {
        self::assertSame(1, \preg_match("/^```$language\n(.*?)^```$/ms", self::guide($guide), $match));

        return $match[1];
    }

    private static function guide(string $name): string
    {
        return (string) \file_get_contents(__DIR__ . "/../../../docs/guides/$name");
    }
}
