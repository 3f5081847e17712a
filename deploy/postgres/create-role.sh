#!/bin/sh
# Runs once, when the database is created. wellkept refuses superusers, because row-level security does not hold them.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set password="$WELLKEPT_PASSWORD" <<'SQL'
CREATE ROLE wellkept LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE wellkept OWNER wellkept;
\connect wellkept
CREATE EXTENSION vector;
SQL
