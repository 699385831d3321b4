<?php

declare(strict_types=1);

namespace McpState\Tests;

/** Puts random delays before and after every method of an object, whatever interface its callers know it by. */
final class Delayed
{
    /**
     * An object of $interface that hands every call on to $inner, with delays around it, around each closure among the
     * arguments, and around the methods of what the call returns.
     *
     * @template T of object
     * @param T                  $inner
     * @param class-string<T>    $interface
     * @param list<class-string> $returned interfaces of returned objects that are delayed as well
     * @param list<string>       $atOnce   methods without delays
     * @return T
     */
    public static function behind(
        object $inner,
        string $interface,
        Delays $delays,
        array $returned = [],
        array $atOnce = [],
    ): object {
        $call = static function (string $method, array $arguments) use ($inner, $delays, $returned, $atOnce): mixed {
            $around = in_array($method, $atOnce, true)
                ? static fn (\Closure $operation): mixed => $operation()
                : $delays->around(...);
            $arguments = array_map(static fn (mixed $argument): mixed => $argument instanceof \Closure
                ? static fn (mixed ...$given): mixed => $around(static fn (): mixed => $argument(...$given))
                : $argument, $arguments);
            $result = $around(static fn (): mixed => $inner->$method(...$arguments));
            foreach ($returned as $one) {
                if ($result instanceof $one) {
                    return self::behind($result, $one, $delays, $returned, $atOnce);
                }
            }

            return $result;
        };

        return self::implementation($interface, $call);
    }

    /** An object whose methods are those of $interface, each of which is $call with its name and arguments. */
    private static function implementation(string $interface, \Closure $call): object
    {
        $class = 'Delayed' . md5($interface);
        if (!class_exists(__NAMESPACE__ . "\\$class", false)) {
            $methods = array_map(self::method(...), (new \ReflectionClass($interface))->getMethods());
            eval('namespace ' . __NAMESPACE__ . "; final class $class implements \\$interface {
                public function __construct(private readonly \\Closure \$call) {}\n" . implode("\n", $methods) . '}');
        }
        $class = __NAMESPACE__ . "\\$class";

        return new $class($call);
    }

    private static function method(\ReflectionMethod $method): string
    {
        $parameters = array_map(
            static fn (\ReflectionParameter $one): string => self::type($one->getType()) . " \${$one->getName()}"
                . ($one->isDefaultValueAvailable() ? ' = ' . var_export($one->getDefaultValue(), true) : ''),
            $method->getParameters(),
        );
        $type = self::type($method->getReturnType() ?? $method->getTentativeReturnType());
        $return = $type === 'void' ? '' : 'return ';

        return "public function {$method->getName()}(" . implode(', ', $parameters) . ')' . ($type ? ": $type" : '')
            . " { $return(\$this->call)('{$method->getName()}', func_get_args()); }";
    }

    private static function type(?\ReflectionType $type): string
    {
        if ($type instanceof \ReflectionUnionType) {
            return implode('|', array_map(self::type(...), $type->getTypes()));
        }
        if (!$type instanceof \ReflectionNamedType) {
            return '';
        }
        $name = $type->isBuiltin() ? $type->getName() : '\\' . $type->getName();

        return $type->allowsNull() && !in_array($name, ['mixed', 'null'], true) ? "?$name" : $name;
    }
}
