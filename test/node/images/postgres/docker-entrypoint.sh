#!/bin/sh
# What the chart relies on in the public image: POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD_FILE and PGDATA, an empty folder
# becomes a database, and its port opens only then.
set -eu
bin=/opt/postgres/bin
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  "$bin/initdb" -D "$PGDATA" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  if [ "$POSTGRES_DB" != postgres ]; then
    echo "create database $POSTGRES_DB" | "$bin/postgres" --single -D "$PGDATA" postgres
  fi
fi
exec "$bin/postgres" -D "$PGDATA" -c listen_addresses='*' -k /var/run/postgresql
