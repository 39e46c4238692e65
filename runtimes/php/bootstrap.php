<?php
/*
 * danki's PHP runtime: loads the handler, then serves events from the Runtime API. AWS has no PHP runtime of its own, so this one behaves
 * as Bref's function runtime does: the handler is a file that returns a callable (or an object with `handle`), called with the event as
 * arrays and a context; `bootstrap.sh` starts the next process after BREF_LOOP_MAX invocations. No extensions, no dependencies, one plain
 * socket: at 128 MB every millisecond of CPU costs 14 of waiting. The peer is danki's Runtime API, which always sends a Content-Length.
 * PHP 8.0 and later.
 */

declare(strict_types=1);

namespace Danki;

const API = '/2018-06-01/runtime';
/** Tells bootstrap.sh that another process shall go on. */
const GO_ON = 87;

/** An error that the runtime itself finds. */
final class Fault extends \RuntimeException
{
    public function __construct(public readonly string $kind, string $message)
    {
        parent::__construct($message);
    }
}

/** One connection, one request at a time. */
final class RuntimeApi
{
    /** @var resource */
    private $socket;

    public function __construct(private string $address)
    {
        $options = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $socket = @stream_socket_client("tcp://$address", $code, $why, 10, STREAM_CLIENT_CONNECT, $options);
        if ($socket === false) {
            throw new \RuntimeException("the Runtime API does not answer: $why");
        }
        // An event may take as long as it likes.
        stream_set_timeout($socket, 365 * 86_400);
        $this->socket = $socket;
    }

    /** Headers (names in lower case) and body of the next event. */
    public function next(): array
    {
        return $this->exchange('GET ' . API . "/invocation/next HTTP/1.1\r\nHost: $this->address\r\n\r\n");
    }

    public function post(string $path, string $body, ?string $errorType = null): void
    {
        $head = 'POST ' . API . "$path HTTP/1.1\r\nHost: $this->address\r\nContent-Type: application/json\r\n";
        if ($errorType !== null) {
            $head .= "Lambda-Runtime-Function-Error-Type: $errorType\r\n";
        }
        $this->exchange($head . 'Content-Length: ' . strlen($body) . "\r\n\r\n" . $body);
    }

    private function exchange(string $request): array
    {
        while ($request !== '') {
            $written = fwrite($this->socket, $request);
            if ($written === false || $written === 0) {
                throw new \RuntimeException('the Runtime API is gone');
            }
            $request = substr($request, $written);
        }
        $headers = [];
        while (($line = fgets($this->socket)) !== "\r\n") {
            if ($line === false) {
                throw new \RuntimeException('the Runtime API is gone');
            }
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $headers[strtolower($name)] = trim($value);
        }
        $length = (int) ($headers['content-length'] ?? 0);
        $body = $length > 0 ? stream_get_contents($this->socket, $length) : '';
        if (strlen($body) < $length) {
            throw new \RuntimeException('the Runtime API is gone');
        }
        return [$headers, $body];
    }
}

/** What the handler may ask about its invocation; methods are named as in Bref. */
final class Context
{
    public function __construct(private array $headers)
    {
    }

    public function getAwsRequestId(): string
    {
        return $this->headers['lambda-runtime-aws-request-id'];
    }

    public function getRemainingTimeInMillis(): int
    {
        return max(0, (int) ($this->headers['lambda-runtime-deadline-ms'] ?? 0) - (int) (microtime(true) * 1000));
    }

    public function getInvokedFunctionArn(): string
    {
        return $this->headers['lambda-runtime-invoked-function-arn'] ?? '';
    }

    public function getTraceId(): string
    {
        return $this->headers['lambda-runtime-trace-id'] ?? '';
    }
}

/** The callable that a handler's file returns. */
function load(string $root, string $handler): callable
{
    $file = "$root/$handler";
    if (!is_file($file)) {
        throw new Fault('Runtime.ImportModuleError', "Handler `$file` doesn't exist");
    }
    // Bref's functions find their packages through Composer's loader.
    if (is_file("$root/vendor/autoload.php")) {
        require_once "$root/vendor/autoload.php";
    }
    try {
        $handler = (static fn () => require $file)();
    } catch (\ParseError $error) {
        $place = "{$error->getFile()}:{$error->getLine()}";
        throw new Fault('Runtime.UserCodeSyntaxError', "{$error->getMessage()} ($place)");
    }
    if (is_object($handler) && !is_callable($handler) && method_exists($handler, 'handle')) {
        return [$handler, 'handle'];
    }
    if (!is_callable($handler)) {
        throw new Fault('Runtime.HandlerNotFound', "`$file` returns neither a callable nor an object with `handle`");
    }
    return $handler;
}

function payload(\Throwable $error): array
{
    $kind = $error instanceof Fault ? $error->kind : get_class($error);
    $message = $error->getMessage();
    return ['errorType' => $kind, 'errorMessage' => $message, 'stackTrace' => explode("\n", $error->getTraceAsString())];
}

/** Reports to the Runtime API and writes the line that Bref writes. */
function report(RuntimeApi $api, string $path, string $what, \Throwable $error): void
{
    $payload = payload($error);
    $text = json_encode($payload, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE);
    fwrite(STDOUT, "$what\t$text\n");
    // A class name may hold what a header may not.
    $safe = preg_match('/^[\x21-\x7e]+$/', $payload['errorType']) === 1;
    $api->post($path, $text, $safe ? $payload['errorType'] : null);
}

function decode(string $body): mixed
{
    try {
        return json_decode($body, true, 512, JSON_THROW_ON_ERROR);
    } catch (\JsonException $error) {
        throw new Fault('Runtime.UnmarshalError', 'Unable to unmarshal input: ' . $error->getMessage());
    }
}

function encode(mixed $result): string
{
    try {
        return json_encode($result, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR);
    } catch (\JsonException $error) {
        throw new Fault('Runtime.MarshalError', 'Unable to marshal response: ' . $error->getMessage());
    }
}

function serve(RuntimeApi $api, callable $handler): void
{
    [$headers, $body] = $api->next();
    $id = $headers['lambda-runtime-aws-request-id'];
    $trace = $headers['lambda-runtime-trace-id'] ?? null;
    putenv($trace === null ? '_X_AMZN_TRACE_ID' : "_X_AMZN_TRACE_ID=$trace");
    try {
        $answer = encode($handler(decode($body), new Context($headers)));
    } catch (\Throwable $error) { // exit() and what PHP calls fatal end the process, as on Lambda
        report($api, "/invocation/$id/error", "$id\tInvoke Error", $error);
        return;
    }
    $api->post("/invocation/$id/response", $answer);
}

function main(): never
{
    // Once, to standard error, whatever php.ini says.
    ini_set('display_errors', '0');
    ini_set('log_errors', '1');
    ini_set('error_log', '');
    $api = new RuntimeApi((string) getenv('AWS_LAMBDA_RUNTIME_API'));
    $loops = max(1, (int) (getenv('BREF_LOOP_MAX') ?: 1));
    try {
        $handler = load((string) getenv('LAMBDA_TASK_ROOT'), (string) getenv('_HANDLER'));
    } catch (\Throwable $error) {
        report($api, '/init/error', 'Init Error', $error);
        exit(1);
    }
    for ($served = 0; $served < $loops; $served++) {
        serve($api, $handler);
    }
    exit(GO_ON);
}

main();
