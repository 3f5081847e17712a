#!/bin/sh
# Runs once, when the database is created. recollect refuses superusers, because row-level security does not hold them.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set password="$RECOLLECT_PASSWORD" <<'SQL'
CREATE ROLE recollect LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE recollect OWNER recollect;
\connect recollect
CREATE EXTENSION vector;
SQL
