"""Credentials of clouds, databases and infrastructure."""

from __future__ import annotations

from wellkept.secrets.rules_shapes import is_random, is_real, prefix_rule, shape_rule

_HEX32 = r"(?<![0-9a-fA-F])([0-9a-fA-F]{32})(?![0-9a-fA-F])"
_GAP = r"s?[\"']?(?:\s?[:=]+\s?|\s(?i:is|was|ist|est|es)[:\s]\s?|\s)[\"'`]?"
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"


def _is_aws_id(body: str) -> bool:
    return is_real(body) and any(c.isdigit() for c in body)


CLOUD = (
    prefix_rule(
        "aws-access-key",
        "akia asia abia acca",
        chars="A-Z0-9",
        size=16,
        check=_is_aws_id,
        hits=("AKIA{b32:14}42", "temporary: ASIA{b32:14}7Q, expires soon"),
        misses=("AKIAIOSFODNN7EXAMPLE", "AKIA is the prefix of a key id", "ASIAPACIFICREGIONALSALES"),
    ),
    shape_rule(
        "aws-access-key",
        "akia|asia",
        r"(?<![A-Za-z0-9])(?i:akia|asia)[A-Za-z0-9]{16}(?![A-Za-z0-9])",
        check=_is_aws_id,
        hits=("akia{low:14}7q", "AkIa{b32:14}42 in the wrong case"),
        misses=("akiaiosfodnn7example", "asia-pacific, not asiapacific"),
    ),
    shape_rule(
        "aws-secret-key",
        "secret_access_key|secret access key|secretaccesskey|aws_secret|aws secret",
        r"(?i:secret_access_key|secret access key|secretaccesskey|aws[_ ]secret(?:[_ ]access)?(?:[_ ]key)?)"
        r"[^A-Za-z0-9+/\n]{0,5}(?:is|=|:)?[^A-Za-z0-9+/\n]{0,5}([A-Za-z0-9+/]{36,44})(?![A-Za-z0-9+/])",
        check=is_random,
        hits=("aws_secret_access_key = {b64:40}", "The AWS secret access key is {b64:40}."),
        misses=(
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "Rotate the secret access key every quarter.",
        ),
    ),
    prefix_rule(
        "aws-bedrock-key",
        "absk bedrock-api-key-",
        chars="A-Za-z0-9+/=",
        least=40,
        hits=("ABSK{b64:110}", "bedrock-api-key-{b64:120}"),
        misses=("bedrock-api-key-rotation", "absk is no word"),
    ),
    prefix_rule(
        "google-api-key",
        "aiza",
        chars=r"\w-",
        least=30,
        size=35,
        hits=("AIza{b64u:35}", "maps key AIzaSy{b64u:33}"),
        misses=("Google keys start with AIza", "AIzaXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"),
    ),
    prefix_rule(
        "google-oauth-token",
        "ya29. gocspx- 1//0",
        chars=r"\w.-",
        least=20,
        hits=("ya29.{b64u:120}", "GOCSPX-{b64u:28}", "refresh 1//0{b64u:60}"),
        misses=("ya29.xxxxxxxxxxxxxxxxxxxxxxx", "an access token begins with ya29."),
    ),
    shape_rule(
        "google-service-account",
        "private_key_id",
        r"(?i:private_key_id)[\"'\s:=]{1,8}([0-9a-f]{32,40})",
        hits=('"private_key_id": "{hex:40}"', "private_key_id={hex:40}"),
        misses=("the private_key_id field names the key", '"private_key_id": "..."'),
    ),
    shape_rule(
        "azure-storage-key",
        "accountkey|sharedaccesskey",
        r"(?i:accountkey|sharedaccesskey)\s?=\s?([A-Za-z0-9+/]{40,}={0,2})",
        hits=(
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={b64:86}==",
            "SharedAccessKey={b64:43}= on the bus",
        ),
        misses=("AccountKey=<key>", "AccountKey=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    shape_rule(
        "azure-client-secret",
        "q~",
        r"(?<=[\w~.]{3}\d)Q~[\w~.-]{30,36}",
        hits=("abc8Q~{b64u:34}", "client secret xYz7Q~{34}"),
        misses=("what about Q~A sessions", "the 4Q~results"),
    ),
    prefix_rule(
        "digitalocean-token",
        "dop_v1_ doo_v1_ dor_v1_",
        chars="a-fA-F0-9",
        least=32,
        size=64,
        hits=("dop_v1_{hex:64}", "dor_v1_{hex:64}"),
        misses=("dop_v1_ is the prefix", "dop_v1_xxxxxxxxxxxxxxxx"),
    ),
    shape_rule(
        "heroku-key",
        "heroku",
        rf"(?i:heroku)[^\n]{{0,24}}?(?i:key|token|auth|secret){_GAP}({_UUID})(?![0-9a-fA-F-])",
        hits=(
            "Heroku API key: {hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}",
            "HEROKU_TOKEN={hex:8}-{hex:4}-4{hex:3}-8{hex:3}-{hex:12}",
        ),
        misses=("Heroku app 7f1c2a34-1111-4222-8333-944455556666", "heroku keys are uuids"),
    ),
    prefix_rule(
        "heroku-key",
        "hrku-",
        chars=r"\w-",
        least=30,
        hits=("HRKU-AA{b64u:58}", "HRKU-{b64u:58}"),
        misses=("HRKU-... is the new form", "HRKU-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "vault-token",
        "hvs. hvb. hvr.",
        chars=r"\w-",
        least=20,
        hits=("hvs.{b64u:90}", "vault login hvs.CAES{b64u:80}"),
        misses=("hvs. is the prefix of service tokens", "hvs.xxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    shape_rule(
        "terraform-token",
        ".atlasv1.",
        r"\.atlasv1\.[\w=-]{40,}",
        hits=("{14}.atlasv1.{67}", "TFC: {14}.atlasv1.{b64u:60}"),
        misses=("the middle is .atlasv1. always", "xxxx.atlasv1.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "databricks-token",
        "dapi dose dkea",
        chars="a-f0-9",
        least=32,
        hits=("dapi{hex:32}", "dapi{hex:32}-2"),
        misses=("dapis are directory interfaces", "dapixxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "supabase-key",
        "sbp_ sb_secret_ sbs_",
        chars=r"\w",
        least=24,
        hits=("sbp_{hex:40}", "sb_secret_{31}"),
        misses=("sbp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sb_secret_ replaces the service role"),
    ),
    prefix_rule(
        "planetscale-token",
        "pscale_tkn_ pscale_pw_ pscale_oauth_",
        chars=r"\w.=-",
        least=20,
        hits=("pscale_tkn_{b64u:43}", "pscale_pw_{b64u:43}"),
        misses=("pscale_pw_ is a password", "pscale_tkn_xxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "fly-token",
        "fo1_ fm1a_ fm1r_ fm2_",
        chars=r"\w+/=-",
        least=30,
        hits=("fo1_{b64u:43}", "FlyV1 fm2_{b64:120}"),
        misses=("fo1_ tokens are old", "fm2_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    shape_rule(
        "cloudflare-key",
        "cloudflare",
        rf"(?i:cloudflare)[^\n]{{0,30}}?(?i:key|token|secret){_GAP}([\w-]{{37,40}})(?![\w-])",
        check=is_random,
        hits=("Cloudflare API token: {b64u:40}", "CLOUDFLARE_API_KEY={hex:37}"),
        misses=("Cloudflare tokens are forty characters", "cloudflare token: your-cloudflare-token-goes-right-here-ok"),
    ),
    shape_rule(
        "okta-token",
        "okta",
        r"(?i:okta)[^\n]{0,40}?(?<![\w-])(00[\w-]{40})(?![\w-])",
        check=is_random,
        hits=("okta: 00{b64u:40}", "Our Okta token is 00{b64u:40}"),
        misses=("okta user 00u1a2b3c4", "Okta tokens start with 00"),
    ),
    shape_rule(
        "twilio-key",
        "sk",
        r"(?<![A-Za-z0-9])(?i:SK)[0-9a-fA-F]{32}(?![A-Za-z0-9])",
        hits=("SK{hex:32}", "Twilio API key SK{hex:32}."),
        misses=("SK00000000000000000000000000000000", "SK Telecom"),
    ),
    shape_rule(
        "twilio-key",
        "twilio",
        rf"(?i:twilio)[^\n]{{0,90}}?(?i:token|secret|auth)[^\n]{{0,20}}?{_HEX32}",
        hits=("Twilio AC{hex:32} with auth token {hex:32}", "TWILIO_AUTH_TOKEN={hex:32}"),
        misses=("Twilio account AC{hex:32} is ours", "twilio auth token rotated on Monday"),
    ),
    shape_rule(
        "twilio-key",
        "ac",
        rf"(?<![A-Za-z0-9])(?i:AC)[0-9a-fA-F]{{32}}\W{{1,3}}(?:\w{{1,8}}\W{{1,3}}){{0,4}}?{_HEX32}",
        hits=("AC{hex:32}:{hex:32}", "sid AC{hex:32} and token {hex:32}"),
        misses=("AC{hex:32} is the account sid", "AC power"),
    ),
)
