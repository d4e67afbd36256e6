#!/usr/bin/env bash
# Runs rank_program on two hosts: network namespaces joined by a veth pair. First the bits of one process, then the link is
# cut in the middle of a step: all processes must end by the World's time limit.
# Usage: two_hosts.sh MPIRUN RANK_PROGRAM; returns 77 if namespaces are not allowed
set -euo pipefail

mpirun=$1 program=$2
a=reel_a_$$ b=reel_b_$$ net=10.77.$((RANDOM % 250)) folder=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0

skip() {
  echo "two_hosts: skipped, since $*" >&2
  exit 77
}
fail() {
  echo "two_hosts: $*" >&2
  tail -n 30 "$folder"/* >&2
  exit 1
}
processes() { { ip netns pids "$a"; ip netns pids "$b"; } 2>/dev/null; }
clean_up() {
  for process in $(processes); do kill -9 "$process" 2>/dev/null || true; done
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$folder"
}

command -v ip >/dev/null || skip "there is no ip (Debian: iproute2)"
trap clean_up EXIT
{ ip netns add "$a" && ip netns add "$b"; } 2>/dev/null || skip "network namespaces are not allowed here"
ip link add "va$$" netns "$a" type veth peer name "vb$$" netns "$b" 2>/dev/null ||
  skip "veth pairs are not allowed here"
ip -n "$a" addr add "$net.1/24" dev "va$$"
ip -n "$b" addr add "$net.2/24" dev "vb$$"
for ns in "$a" "$b"; do ip -n "$ns" link set lo up; done
ip -n "$a" link set "va$$" up
ip -n "$b" link set "vb$$" up

# Takes the place of ssh: the host's name, then a command.
cat >"$folder/agent" <<END
#!/bin/sh
shift
exec ip netns exec $b sh -c "\$*"
END
chmod +x "$folder/agent"

run() {
  ip netns exec "$a" "$mpirun" --quiet -n 2 -H "$net.1:1,$net.2:1" --mca plm_rsh_agent "$folder/agent" \
    --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self --mca btl_tcp_if_include "$net.0/24" \
    --mca oob_tcp_if_include "$net.0/24" "$program" "$@"
}

alone=$("$program" bits 600 plan)
both=$(run bits 600 plan 2>"$folder/error") || fail "training on two hosts failed"
[[ $both == "$alone" ]] || fail "two hosts give the bits $both, one process $alone"
echo "two_hosts: the bits of one process"

# Starts the program, and returns when both ranks make calls. They must come to each call within the World's limit, and how
# long that takes on a busy machine is unknown: the limit is doubled until they do.
for ((limit = 1; limit <= 64; limit *= 2)); do
  : >"$folder/out"
  run endless "$limit" >"$folder/out" 2>"$folder/error" &
  job=$!
  while ! grep -q started "$folder/out" && kill -0 "$job" 2>/dev/null; do sleep 0.1; done
  grep -q started "$folder/out" && break
  grep -q "not all ranks came to call" "$folder/error" || fail "the program did not start"
  wait "$job" || true
done
grep -q started "$folder/out" || fail "the program did not start within $limit s"
start=$SECONDS
ip -n "$a" link set "va$$" down
# Without the World's limit they would end after a quarter of an hour.
while [[ -n $(processes) ]] && ((SECONDS - start < 300)); do sleep 0.1; done
[[ -z $(processes) ]] || fail "five minutes after the cut there are processes: $(processes | xargs ps -o args= -p | sort | uniq -c)"
wait "$job" && fail "mpirun returned 0 after the cut"
grep -q "not all ranks came to call" "$folder/error" || fail "no rank named the calls"
echo "two_hosts: all processes ended $((SECONDS - start)) s after the cut, with a time limit of $limit s"
