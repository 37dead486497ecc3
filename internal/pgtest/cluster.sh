#!/bin/sh
# A PostgreSQL cluster for tests, on a socket only, that lives as long as its
# standard input stays open: it ends with whoever started it, however that
# ends. It prints "ready" when the cluster in FOLDER (made here) takes
# connections on the socket FOLDER/.s.PGSQL.5432.
#
#   sh cluster.sh FOLDER [fsync]     look for PostgreSQL, make, run
#   sh cluster.sh --look             only look for PostgreSQL
#
# Its order of text is a language's, not that of bytes, so that tests see
# where the two differ. With fsync it is as safe, and as slow, as a real one.
set -u

# PostgreSQL's server is not on PATH on Debian.
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
if [ ! -x "${bin:-/none}/initdb" ]; then
	bin=$(dirname "$(command -v initdb || echo /none)")
fi
if [ ! -x "$bin/initdb" ] || [ ! -x "$bin/postgres" ]; then
	echo "PostgreSQL is missing on this machine: apt-get install postgresql, or run ./test --needs as root" >&2
	exit 3
fi
[ "$1" != --look ] || exit 0

folder=$1
umask 077
mkdir "$folder" || exit 1
# PostgreSQL refuses to run as root.
as=""
if [ "$(id -u)" = 0 ]; then
	chown postgres "$folder" || exit 1
	as="runuser -u postgres --"
fi
safety="-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
[ "${2:-}" != fsync ] || safety=""

end() {
	# SIGQUIT ends it at once; nothing of it is kept.
	[ ! -s "$folder/data/postmaster.pid" ] || kill -QUIT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null
	wait
	rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

cd "$folder" || exit 1
# shellcheck disable=SC2086 # lists of words
$as "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --no-sync --locale=C --locale-provider=icu --icu-locale=en-US \
	>"$folder/initdb.log" 2>&1 </dev/null || { cat "$folder/initdb.log" >&2; exit 1; }
# shellcheck disable=SC2086
$as "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=400 -c shared_buffers=64MB \
	-c autovacuum=off -c jit=off -c wal_level=minimal -c max_wal_senders=0 -c checkpoint_timeout=1h -c max_wal_size=4GB $safety >"$folder/postgres.log" 2>&1 </dev/null &
tries=0
until $as "$bin/pg_isready" -q -h "$folder" -U postgres; do
	tries=$((tries + 1))
	if [ "$tries" -gt 300 ]; then
		cat "$folder/postgres.log" >&2
		exit 1
	fi
	sleep 0.05
done
echo ready
# Until whoever holds the other end lets go of it.
cat >/dev/null
