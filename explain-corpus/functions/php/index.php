<?php
// Functions for the corpus. This one has a query that takes the database 50 ms; its connection ends with the invocation.

declare(strict_types=1);

return function (): array {
    $dsn = sprintf('mysql:host=%s;port=%s;dbname=%s', getenv('DB_HOST'), getenv('DB_PORT'), getenv('DB_DATABASE'));
    $pdo = new PDO($dsn, getenv('DB_USERNAME'), getenv('DB_PASSWORD'), [PDO::ATTR_EMULATE_PREPARES => true]);
    return ['slept' => $pdo->query('SELECT SLEEP(0.05)')->fetchColumn()];
};
