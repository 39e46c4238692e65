# For the scripts beside it: `extension LOG COMMAND...` starts danki-secrets by that command on a free port, in front of upstream.py, and
# exports what its clients read. Both end with the script: one reads its end of a pipe, the other is killed.
extension() {
  local log=$1 port
  shift
  coproc upstream { exec python3 conformance/secrets/upstream.py; }
  read -r port <&"${upstream[0]}"
  PARAMETERS_SECRETS_EXTENSION_HTTP_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export AWS_SESSION_TOKEN='the token' PARAMETERS_SECRETS_EXTENSION_HTTP_PORT
  AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1 AWS_ENDPOINT_URL=http://127.0.0.1:$port \
    "$@" > "$log" 2>&1 &
  extension=$!
  trap 'kill "$extension" 2> /dev/null || true' EXIT
  for _ in {1..200}; do
    grep -qs 'Serving on port' "$log" && return
    sleep 0.05
  done
  cat "$log"
  return 1
}

# Ends both, so that others can be started.
end_extension() {
  kill "$extension" 2> /dev/null || true
  wait "$extension" 2> /dev/null || true
  exec {upstream[1]}>&-
  wait "$upstream_PID" 2> /dev/null || true
}
