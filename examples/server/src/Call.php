<?php

declare(strict_types=1);

namespace McpState\Example;

use McpState\Example\State\Answer;
use McpState\Example\State\SessionState;
use McpState\PendingStatus;

/** A request of the client that is in flight. It offers what a tool may do before it returns its result. */
final class Call
{
    /** @param ?EventStream $stream null if the reply is plain JSON */
    public function __construct(
        public readonly SessionState $session,
        private readonly ?EventStream $stream,
        private readonly int|string|null $progressToken,
    ) {
    }

    /** Reports the progress of the call, if the client has asked for progress. */
    public function progress(int $progress, int $total): void
    {
        if ($this->progressToken !== null && $this->stream !== null) {
            $this->session->notify(Json::notification('notifications/progress', [
                'progressToken' => $this->progressToken,
                'progress' => $progress,
                'total' => $total,
            ]));
            $this->await(null);
        }
    }

    /**
     * Asks the user a question through the client, and waits for the answer.
     *
     * @param array<string, mixed> $schema the JSON Schema of the form
     * @return ?array<string, mixed> the content of the form; null if the user declines
     * @throws ToolError if the client does not offer elicitation, responds with an error, or does not respond in time
     */
    public function elicit(string $message, array $schema, int $timeoutMs): ?array
    {
        if ($this->session->get('client_capabilities.elicitation') === null) {
            throw new ToolError('This client cannot be asked: it does not offer elicitation.');
        }
        $id = $this->session->ask([
            'jsonrpc' => '2.0',
            'method' => 'elicitation/create',
            'params' => ['message' => $message, 'requestedSchema' => $schema],
        ], $timeoutMs);
        $answer = $this->await($id);

        switch ($answer->status) {
            case PendingStatus::Answered:
                if (isset($answer->response['error'])) {
                    throw new ToolError('The client answered: ' . ($answer->response['error']['message'] ?? 'error'));
                }
                $accepted = ($answer->response['result']['action'] ?? null) === 'accept';

                return $accepted ? (array) ($answer->response['result']['content'] ?? []) : null;
            case PendingStatus::TimedOut:
                $this->withdraw($id, 'timed out');
                throw new ToolError("No answer within $timeoutMs ms.");
            case PendingStatus::Cancelled:
                $this->withdraw($id, 'the request it was asked for was cancelled');
                throw new RequestCancelled();
            default:
                throw new ToolError('The question is not pending any more.');
        }
    }

    /** Writes this stream's outgoing messages until the question $id is resolved. */
    private function await(?int $id): Answer
    {
        if ($this->stream === null) {
            throw new \LogicException('Only a tool that streams can wait for the client.');
        }
        while (true) {
            foreach ($this->session->take() as $message) {
                $this->stream->message($message);
            }
            $answer = $this->session->claim($id);
            if ($answer->status !== PendingStatus::Waiting) {
                return $answer;
            }
            $this->session->wait(max(1, min($answer->remainingMs, $this->stream->untilKeepAlive())));
            $this->stream->keepAlive();
        }
    }

    /** Tells the client that a question no longer needs an answer. */
    private function withdraw(int $id, string $reason): void
    {
        $this->stream?->message(Json::notification('notifications/cancelled', ['requestId' => $id, 'reason' => $reason]));
    }
}
