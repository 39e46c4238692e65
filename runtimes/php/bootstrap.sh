#!/bin/sh
# A PHP process serves BREF_LOOP_MAX invocations, then the next one takes over: 1 unless said otherwise, as in Bref (brefphp/bref), where
# most PHP functions come from. Code 87 is "my share is done"; with any other the runtime has ended, as it would on Lambda.
while :; do
  "$1" "${0%/*}/bootstrap.php"
  code=$?
  [ "$code" -eq 87 ] || exit "$code"
done
