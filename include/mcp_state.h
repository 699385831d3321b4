/*
 * mcp-state: session state of MCP servers, shared by concurrent processes. The C library.
 *
 * Each operation is one transaction: it happens in full or not at all (G8), whatever is killed when, and concurrent ones behave as
 * if done one at a time (G1). G1 to G12 are the guarantees of docs/design.md, section 3. docs/install.md says how to get the
 * library, examples/c/ shows it in use.
 *
 * What holds for all functions:
 *
 * - They return a status. MCP_STATE_OK: the out-parameters are set. Otherwise no out-parameter was written, nothing was
 *   changed (but for MCP_STATE_OUTCOME_UNKNOWN), and *error, unless `error` is NULL, says what went wrong. An out-parameter must not
 *   be NULL.
 * - Texts are pairs of pointer and length, UTF-8, without a NUL at the end; a NULL pointer is an absent text where that is allowed.
 *   Durations are milliseconds, sizes bytes; numbers must not be negative.
 * - What `*out_` gets and its documentation says is to be freed is the caller's, to be freed once with the function named. A free
 *   function takes NULL.
 * - An owner is named by the token that mcp_state_attach() gave, in whatever thread or process.
 * - Functions may be called by several threads at once, on one handle too, as long as none frees it. After a fork the child may go
 *   on with its parent's handles. No function calls back, keeps a pointer to an argument, or starts a thread.
 * - Safety: a handle was given by this library and was not freed; a pointer is readable, or writable for an out-parameter, until
 *   the function returns.
 * - Any function on a store may fail with MCP_STATE_INVALID_ARGUMENT, MCP_STATE_STORE_UNAVAILABLE, MCP_STATE_STORE_CORRUPT,
 *   MCP_STATE_OUTCOME_UNKNOWN or MCP_STATE_INTERNAL, and any on a session with MCP_STATE_SESSION_NOT_FOUND too. What else it may
 *   fail with stands with it.
 */

#ifndef MCP_STATE_H
#define MCP_STATE_H

/* Written by cbindgen from capi/; do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The version of the ABI that this header describes; `SONAME` ends with it. A caller that loads the library at run time compares
 * it with mcp_state_abi_version().
 */
#define MCP_STATE_ABI_VERSION 1

/**
 * Bytes that an owner's token takes, its NUL included: 32 hexadecimal digits.
 */
#define MCP_STATE_OWNER_SIZE 33

/**
 * In place of a question's time: the store's `request_timeout_ms`.
 */
#define MCP_STATE_TIMEOUT_OF_STORE -1

/**
 * What a function returns. The numbers never change meaning.
 */
typedef enum mcp_state_status {
  /**
   * Done; the out-parameters are set.
   */
  MCP_STATE_OK = 0,
  /**
   * Mend the call: the text names argument, value and what would be right.
   */
  MCP_STATE_INVALID_ARGUMENT = 1,
  /**
   * Mend the DSN.
   */
  MCP_STATE_INVALID_DSN = 2,
  /**
   * Refuse the client's request, or raise the limit.
   */
  MCP_STATE_LIMIT_EXCEEDED = 3,
  /**
   * The session was destroyed, has expired, was evicted, or is somebody else's: answer 404.
   */
  MCP_STATE_SESSION_NOT_FOUND = 4,
  /**
   * The owner was released: attach again.
   */
  MCP_STATE_OWNER_EXPIRED = 5,
  /**
   * Answer 503; the text says what to mend.
   */
  MCP_STATE_STORE_UNAVAILABLE = 6,
  /**
   * Answer 503; what frees space still works.
   */
  MCP_STATE_STORE_FULL = 7,
  /**
   * Another version uses the store.
   */
  MCP_STATE_STORE_INCOMPATIBLE = 8,
  /**
   * The store's files are damaged.
   */
  MCP_STATE_STORE_CORRUPT = 9,
  /**
   * Whether the operation took effect is not known.
   */
  MCP_STATE_OUTCOME_UNKNOWN = 10,
  /**
   * A bug of this library.
   */
  MCP_STATE_INTERNAL = 11,
} mcp_state_status;

/**
 * What became of a cancellation, of a pending request or of one in flight.
 */
typedef enum mcp_state_cancel_outcome {
  /**
   * It is cancelled now.
   */
  MCP_STATE_CANCEL_CANCELLED = 1,
  /**
   * There is none with this id.
   */
  MCP_STATE_CANCEL_UNKNOWN = 2,
  /**
   * Several requests in flight have this id; none was touched.
   */
  MCP_STATE_CANCEL_AMBIGUOUS = 3,
  /**
   * It has an answer, to be claimed.
   */
  MCP_STATE_CANCEL_ALREADY_ANSWERED = 4,
  /**
   * It has timed out.
   */
  MCP_STATE_CANCEL_TIMED_OUT = 5,
  /**
   * It is another owner's.
   */
  MCP_STATE_CANCEL_NOT_OWNER = 6,
  /**
   * It was cancelled before.
   */
  MCP_STATE_CANCEL_ALREADY_CANCELLED = 7,
} mcp_state_cancel_outcome;

/**
 * What became of a pending request.
 */
typedef enum mcp_state_claim_state {
  /**
   * Answered in time.
   */
  MCP_STATE_CLAIM_ANSWERED = 1,
  /**
   * Its deadline has not passed.
   */
  MCP_STATE_CLAIM_WAITING = 2,
  /**
   * Its deadline passed without an answer.
   */
  MCP_STATE_CLAIM_TIMED_OUT = 3,
  /**
   * Its owner cancelled it.
   */
  MCP_STATE_CLAIM_CANCELLED = 4,
  /**
   * It is another owner's.
   */
  MCP_STATE_CLAIM_NOT_OWNER = 5,
  /**
   * There is none with this id, or it was claimed.
   */
  MCP_STATE_CLAIM_UNKNOWN = 6,
} mcp_state_claim_state;

/**
 * How a wait ended.
 */
typedef enum mcp_state_wait_outcome {
  /**
   * Something of the interest is there.
   */
  MCP_STATE_WAIT_READY = 1,
  /**
   * The slice or the time was over.
   */
  MCP_STATE_WAIT_DEADLINE = 2,
  /**
   * The session has ended.
   */
  MCP_STATE_WAIT_DESTROYED = 3,
  /**
   * A signal arrived: handle it and wait again.
   */
  MCP_STATE_WAIT_INTERRUPTED = 4,
} mcp_state_wait_outcome;

/**
 * What became of a response: delivered, or late and discarded (G4).
 */
typedef enum mcp_state_delivery {
  /**
   * Its request was waiting, and its owner is woken.
   */
  MCP_STATE_DELIVERED = 0,
  /**
   * No request had this id.
   */
  MCP_STATE_LATE_UNKNOWN = 1,
  /**
   * Its request was claimed.
   */
  MCP_STATE_LATE_FINISHED = 2,
  /**
   * Its request has timed out.
   */
  MCP_STATE_LATE_TIMED_OUT = 3,
  /**
   * Its request has an answer; the first one counts.
   */
  MCP_STATE_LATE_ALREADY_ANSWERED = 4,
  /**
   * Its request was cancelled.
   */
  MCP_STATE_LATE_CANCELLED = 5,
  /**
   * Its request's owner has ended.
   */
  MCP_STATE_LATE_ABANDONED = 6,
} mcp_state_delivery;

/**
 * What an owner delivers to.
 */
typedef enum mcp_state_owner_kind {
  /**
   * A stream: it also takes the session's broadcasts.
   */
  MCP_STATE_OWNER_STREAM = 1,
  /**
   * One reply.
   */
  MCP_STATE_OWNER_REPLY = 2,
} mcp_state_owner_kind;

/**
 * What an owner waits for; to be added up.
 */
typedef enum mcp_state_interest {
  /**
   * A pending request was answered, timed out or was cancelled.
   */
  MCP_STATE_INTEREST_RESOLUTION = 1,
  /**
   * A message is queued.
   */
  MCP_STATE_INTEREST_MESSAGE = 2,
  /**
   * The client cancelled a request in flight.
   */
  MCP_STATE_INTEREST_CANCELLATION = 4,
} mcp_state_interest;

/**
 * What happens to a request whose id is in flight already.
 */
typedef enum mcp_state_policy {
  /**
   * Both are served, and each keeps its own answer (G6).
   */
  MCP_STATE_POLICY_ISOLATE = 1,
  /**
   * The second is refused.
   */
  MCP_STATE_POLICY_REJECT = 2,
} mcp_state_policy;

/**
 * Bytes that the caller owns: UTF-8, no NUL at the end, NULs in it possible. To be freed with mcp_state_buffer_free().
 */
typedef struct mcp_state_buffer mcp_state_buffer;

/**
 * An open store. To be freed with mcp_state_engine_free(); the store stays open.
 */
typedef struct mcp_state_engine mcp_state_engine;

/**
 * Ids of requests that the caller owns. To be freed with mcp_state_ids_free().
 */
typedef struct mcp_state_ids mcp_state_ids;

/**
 * Messages that the caller owns, in order. To be freed with mcp_state_messages_free().
 */
typedef struct mcp_state_messages mcp_state_messages;

/**
 * Pending requests that the caller owns. To be freed with mcp_state_requests_free().
 */
typedef struct mcp_state_requests mcp_state_requests;

/**
 * A session as one process holds it. Every operation of a session that was destroyed, has expired or was evicted fails with
 * MCP_STATE_SESSION_NOT_FOUND, also when a new session has taken its id (G7). To be freed with mcp_state_session_free(), which
 * does not end the session.
 */
typedef struct mcp_state_session mcp_state_session;

/**
 * What went wrong: the caller's memory, written when a function fails, untouched when it succeeds. It need not be initialised.
 */
typedef struct mcp_state_error {
  /**
   * What the function returned.
   */
  enum mcp_state_status status;
  /**
   * With MCP_STATE_LIMIT_EXCEEDED, the limit; else 0.
   */
  int64_t maximum;
  /**
   * With MCP_STATE_LIMIT_EXCEEDED, the value that would have passed it; else 0.
   */
  int64_t actual;
  /**
   * With MCP_STATE_LIMIT_EXCEEDED, the limit's name as in a DSN (`max_message_bytes`); else empty. NUL-terminated.
   */
  char limit[40];
  /**
   * One sentence that names the value at fault and says what to do: UTF-8, NUL-terminated, cut where it is too long.
   */
  char text[1024];
} mcp_state_error;

/**
 * One change of mcp_state_patch().
 */
typedef struct mcp_state_change {
  /**
   * The dotted key.
   */
  const char *key;
  /**
   * Bytes of the key.
   */
  size_t key_len;
  /**
   * The JSON text to set; NULL removes the key.
   */
  const char *json;
  /**
   * Bytes of the JSON text.
   */
  size_t json_len;
} mcp_state_change;

/**
 * One message of a list.
 */
typedef struct mcp_state_message {
  /**
   * Its sequence number among the owner's messages, or its number in the topic.
   */
  int64_t number;
  /**
   * The message: UTF-8, not NUL-terminated.
   */
  const uint8_t *text;
  /**
   * Bytes of the message.
   */
  size_t text_len;
  /**
   * What was kept with it; empty for a message of a topic.
   */
  const uint8_t *context;
  /**
   * Bytes of the context.
   */
  size_t context_len;
} mcp_state_message;

/**
 * One pending request of a list.
 */
typedef struct mcp_state_request {
  /**
   * Its id.
   */
  int64_t id;
  /**
   * What a claim by its owner would say now.
   */
  enum mcp_state_claim_state state;
  /**
   * Milliseconds until its deadline, 0 unless it is waiting.
   */
  int64_t left_ms;
  /**
   * Its method: UTF-8, not NUL-terminated.
   */
  const uint8_t *method;
  /**
   * Bytes of the method.
   */
  size_t method_len;
} mcp_state_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library's ABI. It rises when a function or a number changes or goes; what is only added leaves it.
 */
uint32_t mcp_state_abi_version(void);

/**
 * The version of the library, such as "0.1.0": NUL-terminated, never freed.
 */
const char *mcp_state_version(void);

/**
 * Reads an attribute: `client` is all that is stored under `client.…`, `client.name` just that.
 *
 * `*out_json`: the value's JSON text, to be freed with mcp_state_buffer_free(); NULL when it is absent.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_get(const struct mcp_state_session *session,
                                    const char *key,
                                    size_t key_len,
                                    struct mcp_state_buffer **out_json,
                                    struct mcp_state_error *error);

/**
 * Reads all attributes of one moment.
 *
 * `*out_json`: a JSON object, to be freed with mcp_state_buffer_free().
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_all(const struct mcp_state_session *session,
                                    struct mcp_state_buffer **out_json,
                                    struct mcp_state_error *error);

/**
 * Sets an attribute to a JSON text. It replaces what is below the key, and never disturbs keys it does not name.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_set(const struct mcp_state_session *session,
                                    const char *key,
                                    size_t key_len,
                                    const char *json,
                                    size_t json_len,
                                    struct mcp_state_error *error);

/**
 * Removes an attribute and all below it.
 *
 * `*out_removed`: whether there was anything.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_remove(const struct mcp_state_session *session,
                                       const char *key,
                                       size_t key_len,
                                       bool *out_removed,
                                       struct mcp_state_error *error);

/**
 * Reads an attribute and removes it, at once: of several callers one gets it.
 *
 * `*out_json`: the value's JSON text, to be freed with mcp_state_buffer_free(); NULL when it was absent.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_take(const struct mcp_state_session *session,
                                     const char *key,
                                     size_t key_len,
                                     struct mcp_state_buffer **out_json,
                                     struct mcp_state_error *error);

/**
 * Sets an attribute unless it has a value that is not null.
 *
 * `*out_put`: whether it was set.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_put_if_absent(const struct mcp_state_session *session,
                                              const char *key,
                                              size_t key_len,
                                              const char *json,
                                              size_t json_len,
                                              bool *out_put,
                                              struct mcp_state_error *error);

/**
 * Sets an attribute if its value equals `expected`, as JSON values.
 *
 * `expected`: NULL: absent or null. `json`: the new value; NULL: remove it. `*out_set`: whether it did.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_compare_and_set(const struct mcp_state_session *session,
                                                const char *key,
                                                size_t key_len,
                                                const char *expected,
                                                size_t expected_len,
                                                const char *json,
                                                size_t json_len,
                                                bool *out_set,
                                                struct mcp_state_error *error);

/**
 * Applies several changes in order, all at once: others see none or all of them.
 *
 * `changes`: an array of `count` changes; NULL when there are none.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, and then nothing was changed.
 *
 * # Safety
 *
 * As for all functions; `changes` is NULL or readable for `count` elements.
 */
enum mcp_state_status mcp_state_patch(const struct mcp_state_session *session,
                                      const struct mcp_state_change *changes,
                                      size_t count,
                                      struct mcp_state_error *error);

/**
 * The buffer's bytes, good until it is freed; NULL for a NULL buffer.
 *
 * # Safety
 *
 * The buffer is NULL or was not freed.
 */
const uint8_t *mcp_state_buffer_data(const struct mcp_state_buffer *buffer);

/**
 * How many bytes the buffer has; 0 for a NULL buffer.
 *
 * # Safety
 *
 * The buffer is NULL or was not freed.
 */
size_t mcp_state_buffer_len(const struct mcp_state_buffer *buffer);

/**
 * Frees a buffer; NULL is none.
 *
 * # Safety
 *
 * The buffer is NULL or was not freed, and nobody uses its bytes any more.
 */
void mcp_state_buffer_free(struct mcp_state_buffer *buffer);

/**
 * Appends a message to a topic and wakes its readers, whatever process they are in. The topic keeps a bounded number of messages
 * and drops the oldest.
 *
 * `*out_number`: the message's number; those of one topic rise by one.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_publish(const struct mcp_state_engine *engine,
                                        const char *topic,
                                        size_t topic_len,
                                        const char *message,
                                        size_t message_len,
                                        int64_t *out_number,
                                        struct mcp_state_error *error);

/**
 * Where a new reader of a topic starts.
 *
 * `*out_cursor`: the number of its newest message, 0 when there is none.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_cursor(const struct mcp_state_engine *engine,
                                       const char *topic,
                                       size_t topic_len,
                                       int64_t *out_cursor,
                                       struct mcp_state_error *error);

/**
 * Messages of a topic after `cursor`, at most `max`, oldest first: the same in the same order for all readers. None is removed.
 *
 * `*out_messages`: to be freed with mcp_state_messages_free(). `*out_cursor`: from where to read on. `*out_missed`: how many
 * were dropped before this reader saw them.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_since(const struct mcp_state_engine *engine,
                                      const char *topic,
                                      size_t topic_len,
                                      int64_t cursor,
                                      int64_t max,
                                      struct mcp_state_messages **out_messages,
                                      int64_t *out_cursor,
                                      int64_t *out_missed,
                                      struct mcp_state_error *error);

/**
 * Waits for a message of a topic after `cursor`: one slice, at most `wait_ms` and at most a second. To be called in a loop. A
 * signal ends it.
 *
 * `*out_there`: whether there is one.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_wait_since(const struct mcp_state_engine *engine,
                                           const char *topic,
                                           size_t topic_len,
                                           int64_t cursor,
                                           int64_t wait_ms,
                                           bool *out_there,
                                           struct mcp_state_error *error);

/**
 * Uses a key, for nonces and other things to be used once.
 *
 * `*out_first`: true for exactly one caller within `ttl_ms`, whichever process asks first.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_consume_once(const struct mcp_state_engine *engine,
                                             const char *key,
                                             size_t key_len,
                                             int64_t ttl_ms,
                                             bool *out_first,
                                             struct mcp_state_error *error);

/**
 * Opens the store that a DSN names, and makes it if it is not there: `shm://NAME`, `file:///DIRECTORY` or `memory://`, with
 * options as a query (`?ttl_ms=600000&max_sessions=500`). Handles of one process and DSN share one store, which stays open.
 *
 * `*out_engine`: the store, to be freed with mcp_state_engine_free().
 *
 * Fails with MCP_STATE_INVALID_DSN, MCP_STATE_STORE_UNAVAILABLE, MCP_STATE_STORE_INCOMPATIBLE, MCP_STATE_STORE_CORRUPT.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_engine_open(const char *dsn,
                                            size_t dsn_len,
                                            struct mcp_state_engine **out_engine,
                                            struct mcp_state_error *error);

/**
 * Frees the handle of a store; NULL is none. Sessions opened through it stay usable.
 *
 * # Safety
 *
 * The handle is NULL or was not freed.
 */
void mcp_state_engine_free(struct mcp_state_engine *engine);

/**
 * The DSN that the store was opened with.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_dsn(const struct mcp_state_engine *engine,
                                    struct mcp_state_buffer **out_dsn,
                                    struct mcp_state_error *error);

/**
 * Creates a session.
 *
 * `id`: 1 to 255 visible ASCII characters; NULL: a random UUID. `ttl_ms`: how long it lives without being used; NULL: the
 * store's. `principal`: who it belongs to, to everybody else it is not there (G12); NULL: whoever knows the id.
 * `*out_session`: the session, to be freed with mcp_state_session_free(); NULL when the id is taken, and then nothing was changed.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED when there are too many sessions and none can give way, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_create_session(const struct mcp_state_engine *engine,
                                               const char *id,
                                               size_t id_len,
                                               const int64_t *ttl_ms,
                                               const char *principal,
                                               size_t principal_len,
                                               struct mcp_state_session **out_session,
                                               struct mcp_state_error *error);

/**
 * Opens a session.
 *
 * `principal`: who asks; NULL: nobody that is known. `*out_session`: the session, to be freed with mcp_state_session_free();
 * NULL when it never existed, has expired, was destroyed, or is somebody else's: nothing tells these apart (G12).
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_open_session(const struct mcp_state_engine *engine,
                                             const char *id,
                                             size_t id_len,
                                             const char *principal,
                                             size_t principal_len,
                                             struct mcp_state_session **out_session,
                                             struct mcp_state_error *error);

/**
 * The waiting room of the store: each exchange that waits for its client attaches to it (mcp_state_attach()) and detaches afterwards.
 * It is refused with MCP_STATE_LIMIT_EXCEEDED when `places` wait already. A place ends with its process, too. The room is in no list
 * of sessions, and nothing else is done with it.
 *
 * `places`: how many may wait; NULL: the store's `max_waiting`. `*out_room`: to be freed with mcp_state_session_free(); NULL when
 * neither is set, and nobody counts.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_waiting_room(const struct mcp_state_engine *engine,
                                             const int64_t *places,
                                             struct mcp_state_session **out_room,
                                             struct mcp_state_error *error);

/**
 * Removes at most `limit` expired sessions, and releases the owners of dead processes met on the way (G11).
 *
 * `*out_sessions`, `*out_owners`: how many. `*out_more`: whether there is more to collect.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_collect(const struct mcp_state_engine *engine,
                                        int64_t limit,
                                        int64_t *out_sessions,
                                        int64_t *out_owners,
                                        bool *out_more,
                                        struct mcp_state_error *error);

/**
 * What the store holds and has counted, as a JSON object: `sessions`, `used_bytes`, `limit_bytes`,
 * `waiting`, `max_waiting`; `counters` and `limits`, numbers
 * by name; `place`, texts by name. Names may be added.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_stats(const struct mcp_state_engine *engine,
                                      struct mcp_state_buffer **out_json,
                                      struct mcp_state_error *error);

/**
 * Notes that the owner serves a client's request.
 *
 * `id_text`: the request's JSON-RPC id if that is a text; NULL: it is the number `id`. `policy`: MCP_STATE_POLICY_*.
 * `*out_begun`: false when a request with this id is in flight and the policy is to reject.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_begin_request(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t id,
                                              const char *id_text,
                                              size_t id_text_len,
                                              int32_t policy,
                                              bool *out_begun,
                                              struct mcp_state_error *error);

/**
 * Notes that the owner has served a client's request.
 *
 * `id`, `id_text`: as of mcp_state_begin_request(). `*out_was_in_flight`: whether it was. `*out_cancelled`: whether the client
 * cancelled it meanwhile.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_finish_request(const struct mcp_state_session *session,
                                               const char *owner,
                                               size_t owner_len,
                                               int64_t id,
                                               const char *id_text,
                                               size_t id_text_len,
                                               bool *out_was_in_flight,
                                               bool *out_cancelled,
                                               struct mcp_state_error *error);

/**
 * Whether the client has cancelled this request of the owner.
 *
 * `id`, `id_text`: as of mcp_state_begin_request().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_is_cancelled(const struct mcp_state_session *session,
                                             const char *owner,
                                             size_t owner_len,
                                             int64_t id,
                                             const char *id_text,
                                             size_t id_text_len,
                                             bool *out_cancelled,
                                             struct mcp_state_error *error);

/**
 * Cancels the one request in flight with this id, whose owner is woken.
 *
 * `id`, `id_text`: as of mcp_state_begin_request(). `*out_outcome`: MCP_STATE_CANCEL_CANCELLED, _UNKNOWN or _AMBIGUOUS.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_cancel_request(const struct mcp_state_session *session,
                                               int64_t id,
                                               const char *id_text,
                                               size_t id_text_len,
                                               enum mcp_state_cancel_outcome *out_outcome,
                                               struct mcp_state_error *error);

/**
 * How many messages the list has; 0 for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
size_t mcp_state_messages_len(const struct mcp_state_messages *messages);

/**
 * The message at `index`, counted from 0, good until the list is freed; NULL where there is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
const struct mcp_state_message *mcp_state_messages_at(const struct mcp_state_messages *messages,
                                                      size_t index);

/**
 * Frees a list of messages; NULL is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed, and nobody uses its elements any more.
 */
void mcp_state_messages_free(struct mcp_state_messages *messages);

/**
 * How many requests the list has; 0 for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
size_t mcp_state_requests_len(const struct mcp_state_requests *requests);

/**
 * The request at `index`, counted from 0, good until the list is freed; NULL where there is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
const struct mcp_state_request *mcp_state_requests_at(const struct mcp_state_requests *requests,
                                                      size_t index);

/**
 * Frees a list of requests; NULL is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed, and nobody uses its elements any more.
 */
void mcp_state_requests_free(struct mcp_state_requests *requests);

/**
 * The ids, good until the list is freed; NULL for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
const int64_t *mcp_state_ids_data(const struct mcp_state_ids *ids);

/**
 * How many ids the list has; 0 for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
size_t mcp_state_ids_len(const struct mcp_state_ids *ids);

/**
 * Frees a list of ids; NULL is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed, and nobody uses its elements any more.
 */
void mcp_state_ids_free(struct mcp_state_ids *ids);

/**
 * Queues a message that only this owner can take (G3).
 *
 * `context`: kept with the message, may be empty. `*out_sequence`: its number among the owner's messages.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_enqueue_outgoing(const struct mcp_state_session *session,
                                                 const char *owner,
                                                 size_t owner_len,
                                                 const char *message,
                                                 size_t message_len,
                                                 const char *context,
                                                 size_t context_len,
                                                 int64_t *out_sequence,
                                                 struct mcp_state_error *error);

/**
 * The owner's next messages, at most `max`, removed: at most once, since a process that dies before it has written them takes
 * them along. A stream also gets the session's broadcasts.
 *
 * `*out_messages`: to be freed with mcp_state_messages_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_take_outgoing(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t max,
                                              struct mcp_state_messages **out_messages,
                                              struct mcp_state_error *error);

/**
 * The same messages, kept until mcp_state_acknowledge(): at least once. Broadcasts are this owner's from here on, and return to
 * the session if it ends without acknowledging them.
 *
 * `*out_messages`: to be freed with mcp_state_messages_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_peek_outgoing(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t max,
                                              struct mcp_state_messages **out_messages,
                                              struct mcp_state_error *error);

/**
 * Removes the owner's messages up to and with number `up_to`.
 *
 * `*out_removed`: how many.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_acknowledge(const struct mcp_state_session *session,
                                            const char *owner,
                                            size_t owner_len,
                                            int64_t up_to,
                                            int64_t *out_removed,
                                            struct mcp_state_error *error);

/**
 * Queues a message for whichever stream owner takes it first.
 *
 * `context`: kept with the message, may be empty. `*out_number`: its number among the broadcasts.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_enqueue_broadcast(const struct mcp_state_session *session,
                                                  const char *message,
                                                  size_t message_len,
                                                  const char *context,
                                                  size_t context_len,
                                                  int64_t *out_number,
                                                  struct mcp_state_error *error);

/**
 * Adds an owner: the exchange that this process serves. It ends by mcp_state_detach(), else when this process has died and the
 * lease has run out.
 *
 * `kind`: MCP_STATE_OWNER_*. `lease_ms`: how long it may be silent before its process is looked for; NULL: the store's.
 * `out_owner`: room for MCP_STATE_OWNER_SIZE bytes, which get the token and a NUL; `out_owner_size`: the room there is.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_attach(const struct mcp_state_session *session,
                                       int32_t kind,
                                       const int64_t *lease_ms,
                                       char *out_owner,
                                       size_t out_owner_size,
                                       struct mcp_state_error *error);

/**
 * Renews the owner's lease, as each of its operations does.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_renew(const struct mcp_state_session *session,
                                      const char *owner,
                                      size_t owner_len,
                                      struct mcp_state_error *error);

/**
 * Ends the owner and drops what it has not delivered or claimed: late answers to its requests are abandoned.
 *
 * `*out_ended`: whether it had not ended before. `*out_dropped`, `*out_abandoned`: how many messages and pending requests went.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_detach(const struct mcp_state_session *session,
                                       const char *owner,
                                       size_t owner_len,
                                       bool *out_ended,
                                       int64_t *out_dropped,
                                       int64_t *out_abandoned,
                                       struct mcp_state_error *error);

/**
 * Waits until something of interest that is newer than `after` is there: one slice, at most `wait_ms` and at most a second. It
 * sleeps until another thread or process wakes it (G9). To be called in a loop with the cursor it gave.
 *
 * `interest`: the sum of MCP_STATE_INTEREST_*. `after`: the last wait's cursor, 0 at first. `*out_outcome`: how it ended.
 * `*out_cursor`: the new `after`.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_wait(const struct mcp_state_session *session,
                                     const char *owner,
                                     size_t owner_len,
                                     int32_t interest,
                                     int64_t after,
                                     int64_t wait_ms,
                                     enum mcp_state_wait_outcome *out_outcome,
                                     int64_t *out_cursor,
                                     struct mcp_state_error *error);

/**
 * An integer that no other request of this session has, in any process (G5).
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_next_request_id(const struct mcp_state_session *session,
                                                int64_t *out_id,
                                                struct mcp_state_error *error);

/**
 * Registers a request that is sent by other means.
 *
 * `id`: best from mcp_state_next_request_id(). `timeout_ms`: after which it times out and its answer is late;
 * MCP_STATE_TIMEOUT_OF_STORE: the store's `request_timeout_ms`. `method`: for display, may be empty. `*out_registered`: false when a pending request has this id. `*out_left_ms`: the time it has, else 0.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_register_pending(const struct mcp_state_session *session,
                                                 const char *owner,
                                                 size_t owner_len,
                                                 int64_t id,
                                                 int64_t timeout_ms,
                                                 const char *method,
                                                 size_t method_len,
                                                 bool *out_registered,
                                                 int64_t *out_left_ms,
                                                 struct mcp_state_error *error);

/**
 * Gives a JSON-RPC request an id, registers it and queues it, all at once.
 *
 * `message`: a JSON object without `id`. `timeout_ms`: after which it times out and its answer is late;
 * MCP_STATE_TIMEOUT_OF_STORE: the store's `request_timeout_ms`. `context`: kept with the message, may be empty. `*out_id`: the id.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_send_request(const struct mcp_state_session *session,
                                             const char *owner,
                                             size_t owner_len,
                                             const char *message,
                                             size_t message_len,
                                             int64_t timeout_ms,
                                             const char *context,
                                             size_t context_len,
                                             int64_t *out_id,
                                             struct mcp_state_error *error);

/**
 * Delivers the client's response to the request with this id, whose owner is woken; or discards it (G4).
 *
 * `*out_delivery`: delivered, or why it is late.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_deliver_response(const struct mcp_state_session *session,
                                                 int64_t id,
                                                 const char *payload,
                                                 size_t payload_len,
                                                 enum mcp_state_delivery *out_delivery,
                                                 struct mcp_state_error *error);

/**
 * What became of the owner's request. Answered, timed out and cancelled ones are removed, response and request together (G2).
 *
 * `*out_state`: what became of it. `*out_payload`: the response when answered, to be freed with mcp_state_buffer_free(), else
 * NULL. `*out_left_ms`: the time it has left while waiting, else 0.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_claim(const struct mcp_state_session *session,
                                      const char *owner,
                                      size_t owner_len,
                                      int64_t id,
                                      enum mcp_state_claim_state *out_state,
                                      struct mcp_state_buffer **out_payload,
                                      int64_t *out_left_ms,
                                      struct mcp_state_error *error);

/**
 * The owner's next request that was answered, timed out or was cancelled, removed.
 *
 * `*out_found`: whether there was one. `*out_id`, `*out_state`, `*out_payload`: as of mcp_state_claim(); without one, 0,
 * MCP_STATE_CLAIM_UNKNOWN and NULL.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_claim_any(const struct mcp_state_session *session,
                                          const char *owner,
                                          size_t owner_len,
                                          bool *out_found,
                                          int64_t *out_id,
                                          enum mcp_state_claim_state *out_state,
                                          struct mcp_state_buffer **out_payload,
                                          struct mcp_state_error *error);

/**
 * Removes the owner's requests whose deadline has passed.
 *
 * `*out_ids`: their ids, to be freed with mcp_state_ids_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_resolve_timeouts(const struct mcp_state_session *session,
                                                 const char *owner,
                                                 size_t owner_len,
                                                 struct mcp_state_ids **out_ids,
                                                 struct mcp_state_error *error);

/**
 * Cancels the owner's request: a response that comes now is late.
 *
 * `*out_outcome`: MCP_STATE_CANCEL_CANCELLED, _UNKNOWN, _ALREADY_ANSWERED, _TIMED_OUT, _ALREADY_CANCELLED or _NOT_OWNER.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_cancel_pending(const struct mcp_state_session *session,
                                               const char *owner,
                                               size_t owner_len,
                                               int64_t id,
                                               enum mcp_state_cancel_outcome *out_outcome,
                                               struct mcp_state_error *error);

/**
 * Pending requests of an owner, or of the session.
 *
 * `owner`: NULL: whoever owns them. `*out_requests`: to be freed with mcp_state_requests_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_pending(const struct mcp_state_session *session,
                                        const char *owner,
                                        size_t owner_len,
                                        struct mcp_state_requests **out_requests,
                                        struct mcp_state_error *error);

/**
 * The response to the owner's request, without claiming it.
 *
 * `*out_payload`: to be freed with mcp_state_buffer_free(); NULL when there is none.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_peek_response(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t id,
                                              struct mcp_state_buffer **out_payload,
                                              struct mcp_state_error *error);

/**
 * Frees the handle of a session; NULL is none. The session lives on, and so do its owners.
 *
 * # Safety
 *
 * The handle is NULL or was not freed.
 */
void mcp_state_session_free(struct mcp_state_session *session);

/**
 * The session's id, as in `Mcp-Session-Id`.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_session_id(const struct mcp_state_session *session,
                                           struct mcp_state_buffer **out_id,
                                           struct mcp_state_error *error);

/**
 * Puts off the session's expiry.
 *
 * `*out_there`: whether it still exists.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_touch(const struct mcp_state_session *session,
                                      bool *out_there,
                                      struct mcp_state_error *error);

/**
 * Ends the session for good (G7) and wakes everybody who waits on it.
 *
 * `*out_ended`: whether it still existed.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_destroy_session(const struct mcp_state_session *session,
                                                bool *out_ended,
                                                struct mcp_state_error *error);

/**
 * What the session holds, as a JSON object: `id`, `age_ms`, `idle_ms`, `ttl_ms`, `owners`, `exchanges`, `pending`, `in_flight`,
 * `queued`, `broadcasts`, `message_bytes`, `attribute_bytes`, and `late`, the late responses by reason. Names may be added.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_session_stats(const struct mcp_state_session *session,
                                              struct mcp_state_buffer **out_json,
                                              struct mcp_state_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MCP_STATE_H */
