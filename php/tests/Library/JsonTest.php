<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use McpState\Claim;
use McpState\Exception\InvalidArgument;
use McpState\Internal\Json;
use McpState\PendingStatus;
use PHPUnit\Framework\TestCase;

/** The JSON text of a value is short, readable and lossless. */
final class JsonTest extends TestCase
{
    public function testTextStaysReadableAndFloatsStayFloats(): void
    {
        self::assertSame("[\"caf\u{e9}/x\",1.0,1,{}]", Json::encode(["caf\u{e9}/x", 1.0, 1, new \stdClass()]));
    }

    public function testAnErrorNamesTheTypeAndTheReason(): void
    {
        $this->expectException(InvalidArgument::class);
        $this->expectExceptionMessageMatches('/type array .*UTF-8/');
        Json::encode(["\xff"]);
    }

    public function testWhatJsonSerializeThrowsIsTheCallers(): void
    {
        $this->expectException(\DomainException::class);
        Json::encode(new class implements \JsonSerializable {
            public function jsonSerialize(): mixed
            {
                throw new \DomainException();
            }
        });
    }

    public function testObjectsComeBackAsArrays(): void
    {
        self::assertSame(['a' => ['b' => [], '5' => 1]], Json::decode('{"a":{"b":{},"5":1}}'));
    }

    public function testAnAnswerThatIsNotJsonIsATypedError(): void
    {
        $claim = new Claim(1, PendingStatus::Answered, '{"half":', null);

        $this->expectException(InvalidArgument::class);
        $claim->json();
    }
}
