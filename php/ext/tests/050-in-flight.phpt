--TEST--
In-flight requests: equal ids, both policies, cancellation, typed ids
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Session;

$s = memory_session();
$one = $s->attach(Session::OWNER_STREAM);
$two = $s->attach(Session::OWNER_REPLY);

show('begin', fn () => $s->beginRequest($one, 1));
show('the same id', fn () => $s->beginRequest($two, 1));
show('rejected', fn () => $s->beginRequest($two, 1, Session::POLICY_REJECT));
show('a string is another', fn () => $s->beginRequest($two, '1', Session::POLICY_REJECT));
show('ambiguous', fn () => $s->cancelRequest(1) === Session::CANCEL_AMBIGUOUS);
show('untouched', fn () => [$s->isCancelled($one, 1), $s->isCancelled($two, 1)]);
show('finish', fn () => $s->finishRequest($two, 1));
show('cancel', fn () => $s->cancelRequest(1) === Session::CANCEL_CANCELLED);
show('cancelled', fn () => [$s->isCancelled($one, 1), $s->isCancelled($two, '1')]);
show('finish', fn () => $s->finishRequest($one, 1));
show('finish', fn () => $s->finishRequest($one, 1));
show('unknown', fn () => $s->cancelRequest(1) === Session::CANCEL_UNKNOWN);
show('free again', fn () => $s->beginRequest($one, 1, Session::POLICY_REJECT));
?>
--EXPECT--
begin: true
the same id: true
rejected: false
a string is another: true
ambiguous: true
untouched: [false,false]
finish: false
cancel: true
cancelled: [true,false]
finish: true
finish: null
unknown: true
free again: true
