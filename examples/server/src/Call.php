<?php

declare(strict_types=1);

namespace McpState\Example;

use McpState\Example\State\Answer;
use McpState\Example\State\SessionState;
use McpState\PendingStatus;

/**
 * A request of the client while it is being served: what a tool may do besides returning its result.
 */
final class Call
{
    /** @param ?EventStream $stream null when the reply is plain JSON */
    public function __construct(
        public readonly SessionState $session,
        private readonly ?EventStream $stream,
        private readonly int|string|null $progressToken,
    ) {
    }

    /** Tells the client how far the call has come, if it wants to know. */
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
     * Asks the user something through the client, and waits.
     *
     * @param array<string, mixed> $schema JSON Schema of the form
     * @return ?array<string, mixed> the form's content; null when the user declines
     * @throws ToolError when the client cannot ask, answers with an error, or does not answer in time
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

    /** Writes what is queued for this stream until the question $id is settled. */
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

    /** Tells the client that a question needs no answer any more. */
    private function withdraw(int $id, string $reason): void
    {
        $this->stream?->message(Json::notification('notifications/cancelled', ['requestId' => $id, 'reason' => $reason]));
    }
}
