<?php

/**
 * A worker of test_ffi_fpm.py: asks, answers, dies, and tells what it runs on.
 */

declare(strict_types=1);

use McpState\Exception\BackendMissing;
use McpState\Store;

require __DIR__ . '/../../../php/autoload.php';

header('Content-Type: text/plain');

try {
    $store = Store::open();
} catch (BackendMissing $e) {
    http_response_code(503);
    exit($e->getMessage());
}

$session = $store->openSession($_GET['session'] ?? 'none');

switch ($_GET['do']) {
    case 'tell':
        preg_match_all('~\S+/(?:lib)?mcp_state\.so\S*~', (string) file_get_contents('/proc/self/maps'), $libraries);
        echo json_encode([
            'backend' => get_debug_type((fn () => $this->driver)->call($store)),
            'libraries' => array_values(array_unique($libraries[0])),
            'preload' => ini_get('ffi.preload'),
        ]);
        break;
    case 'ask':
        $session = $store->createSession();
        $question = $session->attach()->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create'], 60_000);
        echo json_encode(['session' => $session->id, 'id' => $question->id]), "\n";
        flush();
        echo $question->await()->payload;
        break;
    case 'answer':
        $delivery = $session->deliverResponse((int) $_GET['id'], (string) file_get_contents('php://input'));
        echo $delivery->reason?->name ?? 'Delivered';
        break;
    case 'die':
        $session = $store->createSession();
        $question = $session->attach()->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create'], 60_000);
        echo json_encode(['session' => $session->id, 'id' => $question->id]);
        no_such_function();
        // no break
    case 'ffi':
        try {
            FFI::cdef('int getpid(void);');
            echo 'allowed';
        } catch (FFI\Exception $e) {
            echo $e->getMessage();
        }
}
