--TEST--
Pending requests: register, send, deliver, claim, time out, cancel, list
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Session;

function name_of(string $prefix, int $value): string
{
    foreach ((new ReflectionClass(Session::class))->getConstants() as $name => $number) {
        if ($number === $value && str_starts_with($name, $prefix)) {
            return $name;
        }
    }

    return "$value?";
}

$s = memory_session();
$one = $s->attach(Session::OWNER_STREAM);
$two = $s->attach(Session::OWNER_STREAM);
$claim = fn (string $owner, int $id): string => name_of('CLAIM_', $s->claim($owner, $id)[0]);
$deliver = fn (int $id): string => name_of($id < 0 ? '' : 'LATE_', $s->deliverResponse($id, '"late"'));

$id = $s->sendRequest($one, '{"method":"ask","params":{}}', 60_000, 'ctx');
[[, $message, $context]] = $s->takeOutgoing($one);
var_dump(json_decode($message, true) == ['method' => 'ask', 'params' => [], 'id' => $id], $context);
var_dump($s->nextRequestId() !== $id);

show('waiting', fn () => $claim($one, $id));
show('milliseconds left', fn () => $s->claim($one, $id)[2] > 50_000);
show('another\'s', fn () => $claim($two, $id));
show('another cancels', fn () => name_of('CANCEL_', $s->cancelPending($two, $id)));
show('delivered', fn () => $s->deliverResponse($id, '"yes"') === Session::DELIVERED);
show('again', fn () => $deliver($id));
show('peek', fn () => $s->peekResponse($one, $id));
show('another peeks', fn () => $s->peekResponse($two, $id));
show('cancel', fn () => name_of('CANCEL_', $s->cancelPending($one, $id)));
show('claim', fn () => $s->claim($one, $id));
show('claim', fn () => $claim($one, $id));
show('late', fn () => $deliver($id));
show('never known', fn () => $deliver(1));

show('register', fn () => $s->registerPending($one, 7, 60_000, 'roots/list') > 50_000);
show('twice', fn () => $s->registerPending($two, 7, 60_000));
show('pending', fn () => array_map(fn ($row) => [$row[0], name_of('CLAIM_', $row[1]), $row[3]], $s->pending($one)));
show('of two', fn () => $s->pending($two));
show('of all', fn () => count($s->allPending()));
show('cancel', fn () => name_of('CANCEL_', $s->cancelPending($one, 7)));
show('cancel', fn () => name_of('CANCEL_', $s->cancelPending($one, 7)));
show('late', fn () => $deliver(7));
show('claim', fn () => $claim($one, 7));
show('unknown', fn () => name_of('CANCEL_', $s->cancelPending($one, 7)));

$s->registerPending($one, 8, 1);
$s->registerPending($one, 9, 1);
usleep(10_000);
show('timed out', fn () => array_map(fn ($row) => [$row[0], name_of('CLAIM_', $row[1]), $row[2]], $s->pending($one)));
show('cancel', fn () => name_of('CANCEL_', $s->cancelPending($one, 8)));
show('late', fn () => $deliver(8));
show('claim', fn () => $claim($one, 8));
show('timeouts', fn () => $s->resolveTimeouts($one));
show('none', fn () => $s->resolveTimeouts($one));

$s->registerPending($one, 10, 60_000);
show('nothing to claim', fn () => $s->claimAny($one));
$s->deliverResponse(10, '{}');
show('nothing for two', fn () => $s->claimAny($two));
show('any', fn () => $s->claimAny($one) === [10, Session::CLAIM_ANSWERED, '{}']);

$s->registerPending($one, 11, 60_000);
show('detach', fn () => $s->detach($one));
show('late', fn () => $deliver(11));
show('nothing left', fn () => $s->allPending());
?>
--EXPECT--
bool(true)
string(3) "ctx"
bool(true)
waiting: "CLAIM_WAITING"
milliseconds left: true
another's: "CLAIM_NOT_OWNER"
another cancels: "CANCEL_NOT_OWNER"
delivered: true
again: "LATE_ALREADY_ANSWERED"
peek: "\"yes\""
another peeks: null
cancel: "CANCEL_ALREADY_ANSWERED"
claim: [1,"\"yes\"",null]
claim: "CLAIM_UNKNOWN"
late: "LATE_FINISHED"
never known: "LATE_UNKNOWN"
register: true
twice: null
pending: [[7,"CLAIM_WAITING","roots/list"]]
of two: []
of all: 1
cancel: "CANCEL_CANCELLED"
cancel: "CANCEL_ALREADY_CANCELLED"
late: "LATE_CANCELLED"
claim: "CLAIM_CANCELLED"
unknown: "CANCEL_UNKNOWN"
timed out: [[8,"CLAIM_TIMED_OUT",0],[9,"CLAIM_TIMED_OUT",0]]
cancel: "CANCEL_TIMED_OUT"
late: "LATE_TIMED_OUT"
claim: "CLAIM_TIMED_OUT"
timeouts: [9]
none: []
nothing to claim: null
nothing for two: null
any: true
detach: {"dropped":0,"abandoned":1}
late: "LATE_ABANDONED"
nothing left: []
