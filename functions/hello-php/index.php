<?php

return fn () => ['statusCode' => 200, 'body' => 'hello'];
