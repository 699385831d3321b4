<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use PHPUnit\Framework\TestCase;

/** The list in `autoload.php` contains every class. */
final class AutoloadTest extends TestCase
{
    public function testTheListOfAutoloadNamesEveryFileOfTheLibrary(): void
    {
        $php = \dirname(__DIR__, 2);
        \preg_match_all("~'(McpState\\\\[^']+)' => __DIR__ \\. '(/src/[^']+)',~", \file_get_contents("$php/autoload.php"), $listed);
        $files = [];

        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator("$php/src", \FilesystemIterator::SKIP_DOTS)) as $file) {
            $path = \substr((string) $file, \strlen($php));
            $files['McpState' . \strtr(\substr($path, 4, -4), '/', '\\')] = $path;
        }

        \ksort($files);
        $list = \array_combine($listed[1], $listed[2]);
        \ksort($list);

        self::assertNotSame([], $files);
        self::assertSame($files, $list);
    }
}
