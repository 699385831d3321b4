--TEST--
The extension has exactly the classes, constants and signatures of its stub file
--EXTENSIONS--
mcp_state
--FILE--
<?php

// The test loads the stubs under another namespace, describes both sides by reflection, and compares the descriptions.
$stub = file_get_contents(__DIR__ . '/../stubs/mcp_state.stub.php');
$stub = str_replace('namespace McpState\Native;', 'namespace Stub\McpState\Native;', $stub, $count);
eval('?>' . $stub);
var_dump($count);

function describe_parameter(ReflectionParameter $p): string
{
    return ($p->getType() ?? 'untyped') . ($p->isVariadic() ? ' ...' : ' ') . ($p->isPassedByReference() ? '&' : '')
        . '$' . $p->getName() . ($p->isOptional() ? ' = ' . describe_default($p) : '');
}

function describe_default(ReflectionParameter $p): string
{
    return $p->isDefaultValueAvailable() ? var_export($p->getDefaultValue(), true) : 'unknown';
}

function describe(string $prefix): array
{
    $lines = [];

    foreach (get_defined_constants() as $name => $value) {
        if (str_starts_with($name, $prefix)) {
            $lines[] = "const $name = " . var_export($value, true);
        }
    }

    foreach ([...get_declared_classes(), ...get_declared_interfaces(), ...get_declared_traits()] as $name) {
        if (!str_starts_with($name, $prefix)) {
            continue;
        }

        $class = new ReflectionClass($name);
        $parent = $class->getParentClass() ? ' extends ' . $class->getParentClass()->name : '';
        $lines[] = ($class->isFinal() ? 'final ' : '') . "class $name$parent";

        foreach ($class->getReflectionConstants() as $constant) {
            if ($constant->class === $name) {
                $lines[] = "$name::$constant->name = " . var_export($constant->getValue(), true);
            }
        }

        foreach ($class->getProperties() as $property) {
            if ($property->class === $name) {
                $default = $property->hasDefaultValue() ? var_export($property->getDefaultValue(), true) : 'none';
                $lines[] = implode(' ', Reflection::getModifierNames($property->getModifiers()))
                    . " {$property->getType()} $name::\$$property->name = $default";
            }
        }

        foreach ($class->getMethods() as $method) {
            if ($method->class === $name) {
                $lines[] = implode(' ', Reflection::getModifierNames($method->getModifiers() & ~ReflectionMethod::IS_FINAL))
                    . " $name::$method->name(" . implode(', ', array_map('describe_parameter', $method->getParameters()))
                    . '): ' . ($method->getReturnType() ?? 'untyped');
            }
        }
    }

    sort($lines);

    return $lines;
}

foreach ((new ReflectionExtension('mcp_state'))->getFunctions() as $name => $function) {
    echo "unexpected function $name\n";
}

$extension = describe('McpState\Native\\');
$stubs = array_map(fn (string $line): string => str_replace('Stub\McpState', 'McpState', $line), describe('Stub\McpState\Native\\'));

foreach (array_diff($stubs, $extension) as $line) {
    echo "only in the stubs:    $line\n";
}

foreach (array_diff($extension, $stubs) as $line) {
    echo "only in the extension: $line\n";
}

var_dump(count($stubs) > 90);
var_dump(McpState\Native\VERSION === phpversion('mcp_state'));
?>
--EXPECT--
int(1)
bool(true)
bool(true)
