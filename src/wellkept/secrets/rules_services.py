"""Credentials of services that agents connect to."""

from __future__ import annotations

from wellkept.secrets.rules_shapes import is_random, is_real, prefix_rule, shape_rule

_KEY_WORD = r"(?i:key|token|secret|auth|pat\b)"
_URL_TOKEN = r"(?!we_)(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?=[A-Za-z_-]*\d)[\w-]{20,})"
_GAP = r"s?[\"']?(?:\s?[:=]+\s?|\s(?i:is|was|ist|est|es)[:\s]\s?|\s)[\"'`]?"

SERVICES = (
    prefix_rule(
        "slack-token",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe- xoxe. xapp-",
        chars=r"\w.%-",
        least=12,
        hits=(
            "xoxb-{dig:12}-{dig:13}-{24}",
            "xoxp-{dig:11}-{dig:11}-{dig:12}-{hex:32}",
            "xapp-1-A{up:10}-{dig:13}-{hex:64}",
        ),
        misses=("Slack bot tokens begin with xoxb-", "xoxb-your-token-goes-here", "xoxp-xxxxxxxxxxxx-xxxxxxxxxxxx"),
        check=lambda body: is_real(body) and sum(c.isdigit() for c in body) >= 4,
    ),
    shape_rule(
        # Whoever knows the address may post: Slack, Discord, Teams, Mattermost, Feishu, Make and many more.
        "webhook",
        "hook",
        rf"(?i:hooks?)(?:b2|-test)?(?:\.[\w.-]{{1,80}})?(?::\d{{2,5}})?/"
        rf"(?:(?!{_URL_TOKEN}|(?:commit|blob|tree|raw|compare|issues|pull)/)[\w.-]{{1,60}}[/?=]){{0,6}}"
        rf"({_URL_TOKEN}[\w/@.%~-]*)",
        check=is_random,
        hits=(
            "https://hooks.slack.com/services/T{up:8}/B{up:8}/{24}7q",
            "https://discord.com/api/webhooks/{dig:18}/{b64u:66}7q",
            "https://x.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{hex:32}/{uuid}",
            "https://hook.eu1.make.com/{low:30}7q",
            "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={uuid}",
        ),
        misses=(
            "https://hooks.slack.com/services/YOUR/WEBHOOK/URLGOESHERE",
            "https://github.com/x/git-hooks/commit/{hex:40}",
            "https://discord.com/api/webhooks/<id>/<token>",
        ),
    ),
    shape_rule(
        "webhook",
        "zapier.com/hooks/|ifttt.com/|hc-ping.com/|pagerduty.com/integration/|.m.pipedream.net|/private-",
        r"(?i:zapier\.com/hooks/catch/\d+/|ifttt\.com/[^\s]{1,80}?/key/|hc-ping\.com/|pagerduty\.com/integration/|/private-)"
        r"((?=[A-Za-z_-]*\d)[\w-]{6,})(?![\w.-])|(?<=://[a-z0-9]{15})\.m\.pipedream\.net",
        hits=(
            "https://hooks.zapier.com/hooks/catch/{dig:7}/{low:5}7q/",
            "maker.ifttt.com/trigger/x/with/key/{20}7q",
            "https://eo{low:13}.m.pipedream.net",
            "https://calendar.google.com/calendar/ical/x/private-{hex:30}7a/basic.ics",
        ),
        misses=("https://zapier.com/hooks/catch/123/abc", "https://ifttt.com/maker_webhooks", "/private-beta"),
    ),
    shape_rule(
        "signed-address",
        "sig=|signature=|security-token=|code=|rlkey=",
        r"(?<=[?&;-])(?i:sig|signature|security-token|code|rlkey)=([\w%+/~.=-]{20,1500})",
        check=is_random,
        hits=(
            "https://a.blob.core.windows.net/c?sv=2022&sig={b64:43}%3D",
            "https://b.s3.amazonaws.com/a.pdf?X-Amz-Expires=900&X-Amz-Signature={hex:64}&x-id=GetObject",
            "https://d1.cloudfront.net/a.mp4?Expires=1799999999&Signature={b64u:300}&Key-Pair-Id=K{up:13}",
        ),
        misses=("?sig=SIGNATURE", "&X-Amz-Signature=<signature>", "?code=page-not-found-in-this-place"),
    ),
    shape_rule(
        "discord-token",
        ".",
        r"(?<=[A-Za-z0-9_-]{23})\.[\w-]{6}\.[\w-]{27,45}(?![\w-])",
        check=is_random,
        hits=("M{25}.G{5}.{b64u:38}", "bot token N{23}.X{5}.{b64u:27}"),
        misses=("docs.python.org", "a-very-long-host-name-indeed.region.compute.internal"),
    ),
    shape_rule(
        "telegram-token",
        ":aa",
        r"(?<=\d{8}):AA[\w-]{30,36}(?![\w-])",
        check=is_random,
        hits=("{dig:10}:AA{b64u:33}", "BotFather gave {dig:9}:AAH{b64u:32}"),
        misses=("12345678:AAA batteries", "ratio 10:AA"),
    ),
    prefix_rule(
        "stripe-key",
        "sk_live_ rk_live_ sk_test_ rk_test_ whsec_ sk_prod_ ak_live_",
        chars="A-Za-z0-9+/=",
        hits=("sk_live_{24}", "rk_live_{99}", "whsec_{b64:32}", "sk_test_{24}"),
        misses=("sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "Stripe's live keys start with sk_live_", "pk_live_{24}"),
    ),
    prefix_rule(
        "shopify-token",
        "shpat_ shpca_ shppa_ shpss_ shptka_",
        chars="a-fA-F0-9",
        size=32,
        hits=("shpat_{hex:32}", "SHPSS_{hex:32}"),
        misses=("shpat_ is an admin token", "shpat_xxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "square-token",
        "sq0atp- sq0csp- sq0idp- eaaaea eaaaf eaaae",
        chars=r"\w-",
        least=20,
        hits=("sq0atp-{b64u:22}", "sq0csp-{b64u:43}", "EAAAE{b64u:58}"),
        misses=("sq0atp-xxxxxxxxxxxxxxxxxxxxxx", "sq0csp- is Square's prefix"),
    ),
    shape_rule(
        "sendgrid-key",
        "sg.",
        r"(?<![A-Za-z0-9])(?i:SG)\.[\w-]{16,24}\.[\w-]{32,48}",
        check=is_random,
        hits=("SG.{b64u:22}.{b64u:43}", "mail: SG.{22}.{43}"),
        misses=("SG.xxxxxxxxxxxxxxxxxxxxxx.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "www.sg.gov.example"),
    ),
    prefix_rule(
        "mailgun-key",
        "key-",
        chars="a-f0-9",
        least=32,
        size=32,
        hits=("key-{hex:32}", "mailgun: key-{hex:32}"),
        misses=("key-value stores", "key-00000000000000000000000000000000"),
    ),
    shape_rule(
        "mailchimp-key",
        "-us",
        r"(?<=[0-9a-fA-F]{32})-us\d{1,2}(?!\w)",
        check=lambda body: True,
        hits=("{hex:32}-us12", "Mailchimp {hex:32}-us6."),
        misses=("us-east-us2", "abc-us12"),
    ),
    prefix_rule(
        "brevo-key",
        "xkeysib- xsmtpsib-",
        chars="A-Za-z0-9-",
        least=30,
        hits=("xkeysib-{hex:64}-{16}", "xsmtpsib-{hex:64}-{16}"),
        misses=("xkeysib-...", "xkeysib-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "notion-token",
        "secret_ ntn_",
        least=38,
        hits=("secret_{43}", "ntn_{dig:11}{35}"),
        misses=("secret_santa_list_2024_final_version_for_the_office", "ntn_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "linear-key",
        "lin_api_ lin_oauth_ lin_wh_",
        size=40,
        hits=("lin_api_{40}", "lin_oauth_{hex:64}"),
        misses=("lin_api_xxxxxxxxxxxxxxxxxxxx", "lin_api_ comes first"),
    ),
    prefix_rule(
        "figma-token",
        "figd_ figo_ figu_",
        chars=r"\w-",
        least=24,
        hits=("figd_{b64u:40}", "figma figo_{40}"),
        misses=("figd_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "figd_ is personal"),
    ),
    shape_rule(
        "airtable-token",
        "pat",
        r"(?<![A-Za-z0-9])(?i:pat)[A-Za-z0-9]{14}\.[0-9a-f]{60,64}",
        check=is_random,
        hits=("pat{14}.{hex:64}", "Airtable: pat{14}.{hex:64}"),
        misses=("pattern.matcher", "patxxxxxxxxxxxxxx.xxxx"),
    ),
    shape_rule(
        "asana-token",
        "/",
        r"(?<=\d)/\d{14,18}(?:/\d{14,18})?:[0-9a-f]{32}",
        check=lambda body: True,
        hits=("asana 1/{dig:16}:{hex:32}", "token 2/{dig:16}/{dig:16}:{hex:32}"),
        misses=("1/1200000000000000:xyz", "asana.com/0/1200000000000000/1200000000000001"),
    ),
    prefix_rule(
        "grafana-token",
        "glsa_ glc_",
        chars=r"\w+/=",
        least=30,
        hits=("glsa_{32}_{hex:8}", "glc_{b64:80}"),
        misses=("glsa_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "glc_ is for Grafana Cloud"),
    ),
    prefix_rule(
        "sentry-token",
        "sntrys_ sntryu_ sntrya_",
        chars=r"\w+/=-",
        least=24,
        hits=("sntrys_eyJ{b64:100}", "sntryu_{hex:64}"),
        misses=("sntrys_...", "sntryu_xxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "newrelic-key",
        "nrak- nrii- nrjs- nral-",
        chars=r"\w-",
        hits=("NRAK-{up:27}", "NRII-{b64u:32}"),
        misses=("NRAK-xxxxxxxxxxxxxxxxxxxxxxxxxxx", "NRAK- is for users"),
    ),
    shape_rule(
        "datadog-key",
        "datadog|dd_api_key|dd_app_key",
        rf"(?i:datadog|dd_)[^\n]{{0,24}}?{_KEY_WORD}{_GAP}([0-9a-f]{{32}}|[0-9a-f]{{40}})(?![\w-])",
        hits=("Datadog API key: {hex:32}", "DD_APP_KEY={hex:40}"),
        misses=("Datadog trace {hex:32} is slow", "datadog keys are 32 hex digits"),
    ),
    shape_rule(
        "pagerduty-key",
        "pagerduty|pager duty",
        rf"(?i:pager ?duty)[^\n]{{0,24}}?{_KEY_WORD}{_GAP}([\w+-]{{20}}|[0-9a-f]{{32}})(?![\w-])",
        check=is_random,
        hits=("PagerDuty API key is u+{18}", "pagerduty routing key: {hex:32}"),
        misses=("PagerDuty incident Q1W2E3R4T5Y6U7 is open", "pagerduty key rotation scheduled-for-october"),
    ),
    shape_rule(
        "service-key",
        "vercel|netlify|algolia|fastly|contentful|segment|mixpanel|amplitude|mapbox|zendesk|intercom|hubspot|jira"
        "|confluence|atlassian|facebook|instagram|twitter|linkedin|reddit|spotify|twitch|zoom|paypal|plaid|coinbase"
        "|binance|kraken|cohere|mistral|deepgram|assemblyai|elevenlabs|pinecone|weaviate|qdrant|openweather|alphavantage"
        "|codecov|travis|linode|vultr|hetzner|circleci|jenkins|artifactory|jfrog|sonar|launchdarkly|auth0|clerk|firebase|mongodb|elastic",
        rf"(?i:[a-z]{{4,12}}\d?)[^\n]{{0,24}}?{_KEY_WORD}{_GAP}([\w+/-]{{20,200}}={{0,2}})(?![\w-])",
        check=is_random,
        hits=("Vercel token: {24}", "my Netlify key is {b64u:43}", "algolia admin key {hex:32}"),
        misses=("Vercel deployment token docs", "twitter authentication-middleware-for-express"),
    ),
    prefix_rule(
        "vendor-key",
        "nsec1 nfp_ vcp_ vck_ ops_ re_ pmak- live_ duffel_live_ ezak eztk flwseck- sk.eyj fio-u- dt0c01. dt0s01. shr_ "
        "hsu_ pat-na1- pat-eu1- ctx7sk- fc- tvly- exa_ ls__ wandb_v1_ rnd_ rpa_ a3- dnkey- secret-tok-",
        chars=r"\w.-",
        least=24,
        hits=("nfp_{40}", "PMAK-{hex:24}-{hex:34}", "tvly-{32}", "dt0c01.{up:24}.{up:64}"),
        misses=(
            "re_export_all_of_the_named_things",
            "live_stream_recording_settings",
            "fc-barcelona-season-2024-2025-tickets",
        ),
    ),
    prefix_rule(
        "facebook-token",
        "eaac eaam eaab eaad eaag",
        least=60,
        hits=("EAAC{120}", "EAAG{150}ZDZD"),
        misses=("EAAC is the start", "EAABxxxxxxxxxxxxxxxxxxxx"),
    ),
    shape_rule(
        "twitter-bearer",
        "aaaaaaaaaaaaaaaaaaaa",
        r"(?<![A-Za-z0-9])(?i:A{20,24})[\w%-]{40,}",
        check=lambda body: is_random(body.lstrip("Aa")),
        hits=("AAAAAAAAAAAAAAAAAAAAAA{b64u:60}%3D{40}", "AAAAAAAAAAAAAAAAAAAAAM{80}"),
        misses=("AAAAAAAAAAAAAAAAAAAAAAAAARGH", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ),
    shape_rule(
        "onepassword-key",
        "a3-",
        r"(?<![A-Za-z0-9])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){3,5}[A-Z0-9]{5}(?![A-Z0-9])",
        hits=(
            "A3-{up:6}-{up:6}-{up:5}-{up:5}-{up:5}-{up:5}",
            "secret key A3-{up:6}-{up:6}-{up:5}-{up:5}-{up:5}-{up:5}",
        ),
        misses=("A3-SIZED-PAPER", "A3-XXXXXX-XXXXXX-XXXXX-XXXXX-XXXXX-XXXXX"),
    ),
)
