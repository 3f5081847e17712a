"""Passwords in command lines, configuration files and calls."""

from __future__ import annotations

import re

from wellkept.secrets.rules_shapes import count_class_changes, is_random, is_stated_password, shape_rule

_WORD = r"[^\s\"']{4,100}"


_SYMBOL_INSIDE = re.compile(r"[A-Za-z0-9][!#$%&*+^~?]")


def _is_symbolic(value: str) -> bool:
    """Return True for `Kiwi!Latch51`, but not for `agent-forwarding` or `id_ed25519`."""
    return (
        is_stated_password(value)
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and _SYMBOL_INSIDE.search(value) is not None
    )


def _is_option_value(value: str) -> bool:
    """Return True for a password right after `-p`; `-prod` and `-port` are other options."""
    return (
        is_stated_password(value) and not (value.isalpha() and count_class_changes(value) < 3) and not value.isdigit()
    )


COMMANDS = (
    shape_rule(
        "curl-password",
        "curl |wget ",
        rf"(?i:curl|wget)[^\n]{{0,120}}?\s(?:-u|--user|--http-password)[\s=]?[\"']?[^\s:\"'=]{{1,60}}[:=]({_WORD})",
        check=is_stated_password,
        hits=("curl -u admin:{12} https://x.example", "curl -s --user bob:{10} url", "curl -ubob:{12} https://x"),
        misses=("curl -u user:password https://x", "curl -u $USER:$PASS url"),
    ),
    shape_rule(
        "pgpass",
        ":5432:|:5433:|:6432:|:*:",
        r":(?:\d{4,5}|\*):(?:[\w*-]{1,63}:)[\w.@*-]{1,63}:((?!\d{1,5}\s)[^\s:]{4,100})(?!\S)",
        check=is_stated_password,
        hits=("db.corp:5432:prod:app:{14}", "*:*:*:replicator:{12}", "10.0.0.5:6432:shop:bob:{10}"),
        misses=("localhost:5432:*:postgres:<password>", "hostname:port:database:username:password", "a:*:*:b:$PW"),
    ),
    shape_rule(
        "command-password",
        "sshpass |wpa_passphrase |htpasswd |net use |echo ",
        r"(?i:sshpass\s+-p\s*|wpa_passphrase\s+\S{1,32}\s+|htpasswd\s+-\w*b\w*\s+\S{1,80}\s+\S{1,40}\s+"
        r"|net use [^\n]{0,80}?/user:\S{1,40}\s+|net use \S{1,4}\s\S{1,80}\s(?=\S{4,100}\s+/user)"
        r"|echo\s(?=\S{4,100}\s?\|\s?sudo -S))[\"']?([^\s\"']{4,100})",
        check=is_stated_password,
        hits=("sshpass -p '{12}' ssh ann@10.1.2.3", "htpasswd -b .htpasswd ann {12}", "wpa_passphrase home {14}"),
        misses=('sshpass -p "$SSHPASS" ssh ann@host', "sshpass -p <password> ssh", "htpasswd -c .htpasswd ann"),
    ),
    shape_rule(
        "command-password",
        "ssh ",
        r"(?i:ssh)\s(?:-\w\s?\S{0,60}\s){0,4}[\w.-]{1,40}@[\w.-]{1,80}[,:]?\s"
        r"(?i:with|using|mit|avec|con|com|met|and|und|et|y|e)\s[\"'`(]?([^\s\"'`()]{6,100})",
        check=_is_symbolic,
        hits=("ssh deploy@10.0.0.4 with {8}!{8}7", "ssh -p 2222 ann@nas.local mit {6}#{6}4"),
        misses=("ssh deploy@10.0.0.4 with id_ed25519", "ssh ann@nas with agent-forwarding", "ssh a@b and C#"),
    ),
    shape_rule(
        "command-password",
        "mysql|mariadb",
        r"(?i:mysql(?:dump|admin)?|mariadb(?:-dump)?)\s(?:[^\n]{0,80}?\s)?-p[\"']?([^\s\"'-][^\s\"']{3,100})",
        check=_is_option_value,
        hits=("mysql -u root -p{14}7 shop", "mysqldump -ubackup -p{16}3 shop > dump.sql"),
        misses=("mysql -u root -p", "mysql -u root -p$PW shop", "mysql -u root -password"),
    ),
    shape_rule(
        "command-password",
        "redis-cli|ldap|openssl|docker login|podman login|smbclient|psexec|winrm|ipmitool|snmp|mongo",
        r"(?i:redis-cli|ldap\w+|openssl|(?:docker|podman) login|smbclient|psexec|winrm|ipmitool|snmp\w+|mongo\w*)"
        r"\s(?:[^\n]{0,100}?\s)?(?:-[akwpP]\s|-pass(?:in|out)? pass:)[\"']?([^\s\"'-][^\s\"']{5,100})",
        check=_is_option_value,
        hits=(
            "redis-cli -a {14}7 ping",
            "openssl enc -aes-256-cbc -k {16}3 -in a",
            "docker login -u x -p {20}7 r.corp",
        ),
        misses=("docker login -u ann -p $TOKEN", "openssl enc -k <password> -in a", "redis-cli -h cache -p 6379"),
    ),
    shape_rule(
        "login-call",
        "login(|auth=(|basicauth(|define(",
        r"(?i:login|auth=|basicauth|define(?=\([\"']\w*(?:PASSW|SECRET|KEY|SALT|TOKEN)))\(\s?[\"'][^\"'\n]{1,80}[\"'],\s?[\"']([^\"'\n]{4,100})[\"']",
        check=is_stated_password,
        hits=('smtp.login("ops@corp.dev", "{12}")', "requests.get(url, auth=('ann', '{14}'))"),
        misses=('smtp.login("user@example.com", "password")', "auth=('user', 'pass') is Basic"),
    ),
    shape_rule(
        "sql-password",
        "identified by",
        r"(?i:identified by)\s{1,2}(?i:password\s)?[\"']([^\"'\n]{4,100})[\"']",
        check=is_stated_password,
        hits=("CREATE USER shop IDENTIFIED BY '{14}';", 'alter user x identified by "{10}"'),
        misses=("IDENTIFIED BY 'password'", "a person is identified by sight"),
    ),
    shape_rule(
        "session-cookie",
        "cookie|phpsessid|jsessionid|connect.sid|sessionid|li_at",
        r"(?i:cookie[^\n]{0,120}?(?<![\w-])[\w.-]{0,30}(?:sess|sid|auth|token|jwt)[\w.-]{0,20}="
        r"|(?:phpsessid|jsessionid|connect\.sid|sessionid|li_at)(?: cookie)?(?: is |[=:]\s?))([\w%.+/~:-]{16,})",
        check=is_random,
        hits=("Cookie: session={40}; theme=dark", "session cookie: PHPSESSID={low:32}", "Set-Cookie: connect.sid={48}"),
        misses=("Set-Cookie: theme=dark; Path=/", "Cookie: session=<id>", "cookie sessions=disabled-for-all-users"),
    ),
)
