<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;

/** The access of the double's tools to the client: a question or progress suspends the fiber of the tool. */
final class Context
{
    public function __construct(public readonly SessionInterface $session)
    {
    }

    /**
     * Asks the client and returns its answer.
     *
     * @throws \RuntimeException if there is no answer
     */
    public function elicit(string $message, int $timeoutS = 120): string
    {
        $request = ['jsonrpc' => '2.0', 'method' => 'elicitation/create', 'params' => ['message' => $message]];
        $response = $this->request(new Message($request), $timeoutS);

        if (!\is_array($response)) {
            throw new \RuntimeException('The stream gave neither a response nor an error.');
        }

        if (isset($response['error'])) {
            throw new \RuntimeException($response['error']['message']);
        }

        return $response['result']['content']['answer'];
    }

    public function progress(int $progress, int $total): void
    {
        $token = $this->session->get('_mcp.active_request_meta', [])['progressToken'] ?? null;

        if ($token !== null) {
            $params = ['progressToken' => $token, 'progress' => $progress, 'total' => $total];
            $notification = ['jsonrpc' => '2.0', 'method' => 'notifications/progress', 'params' => $params];
            \Fiber::suspend([
                'type' => 'notification',
                'notification' => $notification,
                'session_id' => $this->session->getId()->toRfc4122(),
            ]);
        }
    }

    private function request(Message $request, int $timeoutS): mixed
    {
        return \Fiber::suspend([
            'type' => 'request',
            'request' => $request->data,
            'timeout' => $timeoutS,
            'session_id' => $this->session->getId()->toRfc4122(),
        ]);
    }
}
