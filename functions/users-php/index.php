<?php
/*
 * Field report S2's page: all users of a table, as an HTML table. S2 ran Laravel's `User::all()`; Composer's packages are not here, so
 * `hydrate` does what Eloquent does with each row that costs time (an object with two copies of its attributes, dates cast, attributes
 * read through methods), and is named so. Laravel's names for the variables.
 *
 *   DB_HOST DB_PORT DB_DATABASE DB_USERNAME DB_PASSWORD   where the database is
 *   DB_CONNECTION      mysql (default) or pgsql
 *   DB_PERSISTENT=1    a connection serves all invocations of its PHP process; else each opens its own
 *   DB_PREPARES        emulated (PDO's default) or native: prepared by the server, for as long as the connection lasts
 *   DB_SETS=1          after connecting, the SETs that Laravel sends
 *   MYSQL_ATTR_SSL_CA  a CA bundle: the connection is encrypted; PostgreSQL's library reads PGSSLMODE and PGSSLROOTCERT itself
 *   DB_LIMIT           so many users instead of all
 */

declare(strict_types=1);

const SETS_MYSQL = [
    "set names 'utf8mb4' collate 'utf8mb4_unicode_ci'",
    "set session sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
];
const SETS_POSTGRES = ["set names 'utf8'", 'set search_path to "public"'];

function connect(): PDO
{
    $options = [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_PERSISTENT => getenv('DB_PERSISTENT') === '1',
        PDO::ATTR_EMULATE_PREPARES => getenv('DB_PREPARES') !== 'native',
    ];
    $postgres = getenv('DB_CONNECTION') === 'pgsql';
    if (!$postgres && getenv('MYSQL_ATTR_SSL_CA')) {
        $options[PDO::MYSQL_ATTR_SSL_CA] = getenv('MYSQL_ATTR_SSL_CA');
    }
    $dsn = sprintf(
        $postgres ? 'pgsql:host=%s;port=%s;dbname=%s' : 'mysql:host=%s;port=%s;dbname=%s;charset=utf8mb4',
        getenv('DB_HOST'),
        getenv('DB_PORT') ?: ($postgres ? 5432 : 3306),
        getenv('DB_DATABASE'),
    );
    $pdo = new PDO($dsn, getenv('DB_USERNAME'), getenv('DB_PASSWORD'), $options);
    if (getenv('DB_SETS') === '1') {
        foreach ($postgres ? SETS_POSTGRES : SETS_MYSQL as $set) {
            $pdo->exec($set);
        }
    }
    return $pdo;
}

/** Eloquent-like, not Eloquent. */
final class User
{
    private const DATES = ['email_verified_at' => true, 'created_at' => true, 'updated_at' => true];
    private array $original;

    public function __construct(private array $attributes)
    {
        $this->original = $attributes;
    }

    public function __get(string $name): mixed
    {
        $value = $this->attributes[$name] ?? null;
        return isset(self::DATES[$name]) && $value !== null ? new DateTimeImmutable($value) : $value;
    }

    public function isDirty(): bool
    {
        return $this->original !== $this->attributes;
    }
}

/** @return User[] */
function hydrate(PDOStatement $rows): array
{
    $users = [];
    foreach ($rows->fetchAll(PDO::FETCH_ASSOC) as $row) {
        $users[] = new User($row);
    }
    return $users;
}

function page(array $users): string
{
    $html = '<!doctype html><title>Users</title><table><tr><th>ID<th>Name<th>Mail<th>Since';
    foreach ($users as $user) {
        $html .= '<tr><td>' . $user->id . '<td>' . htmlspecialchars($user->name) . '<td>' . htmlspecialchars($user->email)
            . '<td>' . $user->created_at->format('Y-m-d');
    }
    return $html . '</table>';
}

return function (mixed $event): array {
    $began = hrtime(true);
    $headers = ['content-type' => 'text/html; charset=utf-8'];
    try {
        $pdo = connect();
        $connected = hrtime(true);
        $limit = (int) (getenv('DB_LIMIT') ?: 0);
        // Quoted as Eloquent does.
        $table = getenv('DB_CONNECTION') === 'pgsql' ? '"users"' : '`users`';
        $statement = $pdo->prepare('select * from ' . $table . ($limit > 0 ? ' limit ' . $limit : ''));
        $statement->execute();
        $users = hydrate($statement);
        $read = hrtime(true);
        // Lets a connection go that is not persistent, as the end of a request does.
        unset($statement, $pdo);
        $body = page($users);
    } catch (PDOException $error) {
        // Laravel's error page, without its looks.
        fwrite(STDERR, $error->getMessage() . "\n");
        return ['statusCode' => 500, 'headers' => $headers, 'body' => 'Server Error', 'error' => $error->getMessage()];
    }
    $ms = fn (int $from, int $to) => ($to - $from) / 1e6;
    return [
        'statusCode' => 200,
        'headers' => $headers,
        'body' => $body,
        'users' => count($users),
        'connect_ms' => $ms($began, $connected),
        'read_ms' => $ms($connected, $read),
        'ms' => $ms($began, hrtime(true)),
    ];
};
