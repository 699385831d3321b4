--TEST--
docs/settings.md lists every ini setting with its default
--EXTENSIONS--
mcp_state
--FILE--
<?php
$page = file_get_contents(__DIR__ . '/../../../docs/settings.md');
preg_match_all('/^\| `(\w+)` \| `(.+?)` \|/m', $page, $options);
$defaults = array_combine($options[1], $options[2]);

[, $section] = explode("\n## Ini settings of the extension\n", $page);
preg_match('/`mcp_state\.dsn` \| `(.+?)` \| .*\.user\.ini/', $section, $dsn);
preg_match('/^\| (.*mcp_state\..*) \| as the option \| php\.ini/m', $section, $row);
preg_match_all('/`mcp_state\.(\w+)`/', $row[1], $times);
preg_match('/`mcp_state\.` and the name of a limit \| as the limit \| the same/', $section, $limits);

$told = ['mcp_state.dsn' => $dsn[1]];
foreach ([...$times[1], ...preg_grep('/^max_/', $limits ? array_keys($defaults) : [])] as $option) {
    $told["mcp_state.$option"] = $defaults[$option];
}

$there = array_map(fn (array $setting) => $setting['global_value'], ini_get_all('mcp_state'));
echo 'undocumented or different: ', json_encode(array_diff_assoc($there, $told)), "\n";
echo 'documented but missing: ', json_encode(array_diff_assoc($told, $there)), "\n";
?>
--EXPECT--
undocumented or different: []
documented but missing: []
