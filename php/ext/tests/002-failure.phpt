--TEST--
A failure is an ordinary exception: file, line, trace, code, and a limit's numbers
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;
use McpState\Native\Failure;
use McpState\Native\FailureKind;

try {
    Engine::open('nowhere://');
} catch (Failure $failure) {
    var_dump(
        $failure instanceof RuntimeException,
        $failure->getCode() === FailureKind::INVALID_DSN,
        basename($failure->getFile()) === basename(__FILE__),
        $failure->getLine(),
        $failure->getTrace()[0]['function'],
        [$failure->limit, $failure->maximum, $failure->actual],
    );
    echo $failure->getMessage(), "\n";
}

$session = memory_session('max_owners=1');
$session->attach(1);

try {
    $session->attach(1);
} catch (Failure $failure) {
    var_dump($failure->getCode() === FailureKind::LIMIT_EXCEEDED, [$failure->limit, $failure->maximum, $failure->actual]);
}

$own = new Failure('made in PHP', 4, new LogicException('before'));
var_dump([$own->getMessage(), $own->getCode(), $own->getPrevious()->getMessage(), $own->limit]);
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
int(9)
string(4) "open"
array(3) {
  [0]=>
  string(0) ""
  [1]=>
  int(0)
  [2]=>
  int(0)
}
dsn scheme "nowhere" is not known; known are memory, shm, file, redis, rediss and redis+unix
bool(true)
array(3) {
  [0]=>
  string(10) "max_owners"
  [1]=>
  int(1)
  [2]=>
  int(2)
}
array(4) {
  [0]=>
  string(11) "made in PHP"
  [1]=>
  int(4)
  [2]=>
  string(6) "before"
  [3]=>
  string(0) ""
}
