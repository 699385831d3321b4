<?php

declare(strict_types=1);

namespace McpState\Tests\Fuzz;

use McpState\DuplicatePolicy;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\InternalError;
use McpState\Exception\InvalidArgument;
use McpState\Exception\StoreCorrupt;
use McpState\Interest;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\PendingRequest;
use McpState\Session;
use McpState\Store;

/** Calls methods with random values. */
final class Wild
{
    /** @var list<object> */
    private array $objects;
    /** @var list<string> */
    private array $ids = [];
    /** @var list<int> */
    private array $requests = [1];

    public function __construct(private readonly Store $store)
    {
        $this->objects = [$store, $session = $store->createSession(), $session->attach()];
    }

    public function call(): void
    {
        $object = Values::pick($this->objects);
        $method = Values::pick(\array_values(\array_filter(
            (new \ReflectionClass($object))->getMethods(\ReflectionMethod::IS_PUBLIC),
            static fn (\ReflectionMethod $method) => !$method->isConstructor() && !$method->isStatic(),
        )));
        $arguments = $fits = [];

        foreach ($method->getParameters() as $parameter) {
            if ($parameter->isOptional() && \mt_rand(0, 3) === 0 && $parameter->name !== 'waitMs') {
                break;
            }

            $arguments[] = $argument = $this->argument($parameter);
            $fits[] = $parameter->getType() === null || self::fits($parameter->getType(), $argument);
        }

        try {
            $this->keep($object->{$method->name}(...$arguments));
        } catch (InternalError | StoreCorrupt $e) {
            throw $e;
        } catch (ExceptionInterface) {
            // This exception is documented.
        } catch (\TypeError $e) {
            if (!\in_array(false, $fits, true)) {
                throw $e;
            }
        }
    }

    private function argument(\ReflectionParameter $parameter): mixed
    {
        if (\mt_rand(0, 19) === 0 && $parameter->name !== 'waitMs') {
            return Values::any();
        }

        $types = (string) $parameter->getType();

        return match (true) {
            // No call may wait for long.
            $parameter->name === 'waitMs' => Values::pick([0, 1, -1, \PHP_INT_MIN]),
            \str_contains($types, 'OwnerKind') => Values::pick(OwnerKind::cases()),
            \str_contains($types, 'DuplicatePolicy') => Values::pick(DuplicatePolicy::cases()),
            \str_contains($types, 'Interest') => Values::pick(Interest::cases()),
            \str_contains($types, 'Closure') => Values::pick([
                static fn (mixed $value = null) => Values::any(),
                static fn (mixed $value = null) => throw new InvalidArgument('on purpose'),
            ]),
            \in_array($parameter->name, ['id', 'rpcId'], true) && \mt_rand(0, 2) > 0 => $this->id($types),
            $parameter->name === 'token' && \mt_rand(0, 1) === 0 => \str_repeat('0', 32),
            $types === 'mixed' => Values::any(),
            $types === '?int' => \mt_rand(0, 3) === 0 ? null : Values::number(),
            $types === 'int' => Values::number(),
            $types === '?string' => \mt_rand(0, 2) === 0 ? null : Values::text(),
            \str_contains($types, 'array') && \mt_rand(0, 1) === 0 => (array) Values::json(),
            \str_contains($types, 'string') => Values::text(),
            default => Values::any(),
        };
    }

    private function id(string $types): int|string
    {
        return \str_contains($types, 'int') || $types === 'mixed' || $this->ids === [] ? Values::pick($this->requests) : Values::pick($this->ids);
    }

    private static function fits(\ReflectionType $type, mixed $value): bool
    {
        if ($type instanceof \ReflectionUnionType) {
            return \in_array(true, \array_map(static fn ($one) => self::fits($one, $value), $type->getTypes()), true);
        }

        return $value === null ? $type->allowsNull() : match ($type->getName()) {
            'mixed' => true,
            'int' => \is_int($value),
            'string' => \is_string($value),
            // The element types are documented, but PHP checks them only when the code uses an element.
            'array' => \is_array($value) && \array_filter($value, static fn ($element) => !\is_string($element)) === [],
            default => $value instanceof ($type->getName()),
        };
    }

    private function keep(mixed $result): void
    {
        if ($result instanceof Session) {
            $this->ids[] = $result->id;
        } elseif ($result instanceof PendingRequest) {
            $this->requests[] = $result->id;
        } elseif (!$result instanceof Owner) {
            return;
        }

        $this->objects[] = $result;

        if (\count($this->objects) > 40) {
            \array_splice($this->objects, \mt_rand(1, 39), 1);
        }
    }
}
