"""Shapes of credentials in one table: model providers and code hosts here, the rest in the sibling modules.

Minimum lengths are below what providers issue today: a key cut short by one character is still nearly the whole key,
and providers change lengths without notice. For the same reason checksums (GitHub's, npm's) are not verified.
"""

from __future__ import annotations

from wellkept.program import FORMER_NAME
from wellkept.secrets.rules_cloud import CLOUD
from wellkept.secrets.rules_commands import COMMANDS
from wellkept.secrets.rules_generic import GENERIC
from wellkept.secrets.rules_services import SERVICES
from wellkept.secrets.rules_shapes import SecretRule, is_real, prefix_rule, shape_rule

MODELS = (
    prefix_rule(
        "anthropic-key",
        "sk-ant-",
        chars=r"\w-",
        hits=("My Claude key is sk-ant-api03-{b64u:93}AA.", "sk-ant-admin01-{b64u:60}"),
        misses=("Anthropic keys start with sk-ant-api03-", "sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "openai-key",
        "sk-proj- sk-svcacct- sk-admin- sk-None-",
        chars=r"\w-",
        hits=("sk-proj-{b64u:48}", "Use sk-svcacct-{b64u:74} for the batch job", "SK-PROJ-{48}"),
        misses=("sk-proj-your-key-goes-here-please", "The prefix sk-proj- marks a project key."),
    ),
    prefix_rule(
        "openai-key",
        "sk-",
        least=12,
        hits=("sk-abc123def456ghi789", "The key: sk-{48}, valid till June", "Sk-{20}T3BlbkFJ{20}"),
        misses=("sk-learn and sk-image are libraries", "sk-xxxxxxxxxxxxxxxxxxxx", "task-1234abcd5678efgh90", "sk-..."),
    ),
    prefix_rule(
        "openrouter-key",
        "sk-or-v1- sk-or-",
        hits=("sk-or-v1-{hex:64}", "openrouter gave me sk-or-{40}"),
        misses=("sk-or-v1-...", "sk-or-else we lose the match"),
    ),
    prefix_rule(
        "huggingface-token",
        "hf_ api_org_",
        least=20,
        size=34,
        hits=("hf_{let:34}", "login with hf_{34} on the hub"),
        misses=("hf_hub_download fetches one file", "set hf_transfer to true", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        # Our own keys get pasted into conversations as well.
        "wellkept-key",
        f"wellkept_ {FORMER_NAME}_",
        chars=r"\w",
        least=40,
        size=69,
        hits=(
            "wellkept_mfrw2zi_{low:8}_{low:52}",
            FORMER_NAME + "_mfrw2zi_{low:8}_{low:52}",
            "The memory server wants WELLKEPT_mfrw2zi_{low:8}_{low:52}",
        ),
        misses=(
            "wellkept_a_key_looks_like_this_one_here_and_so_on",
            "wellkept_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
    ),
    shape_rule(
        "wellkept-key",
        f"wellkept_ {FORMER_NAME}_",
        rf"(?<![A-Za-z0-9])(?i:(?:wellkept|{FORMER_NAME})_[a-z2-7]{{2,104}}_[a-z2-7]{{8}}_[a-z2-7]{{40,60}})",
        hits=("wellkept_mfrw2zi_{low:8}_{low:52}", "key=wellkept_mrswmylvnr2a_{low:8}_{low:51}"),
        misses=("wellkept_demo_aaaaaaaa_...", "wellkept_<tenant>_<id>_<secret>"),
        check=is_real,
    ),
    prefix_rule(
        "replicate-token",
        "r8_",
        size=37,
        hits=("r8_{37}", "export REPLICATE_API_TOKEN=r8_{37}"),
        misses=("r8_unorm is a texture format", "r8_aaaaaaaaaaaaaaaaaaaaaaaa"),
    ),
    prefix_rule(
        "model-provider-key",
        "sk_ gsk_ pplx- xai- nvapi- fw_ csk- tgp_v1_ jina_ lsv2_pt_ lsv2_sk_ pcsk_ voyage- esecret_",
        chars=r"\w-",
        least=24,
        hits=("gsk_{52}", "pplx-{48}", "xai-{80}", "nvapi-{b64u:64}", "lsv2_pt_{hex:32}_{hex:10}"),
        misses=("gsk_your_groq_key_goes_here_ok", "xai-explainability-methods-overview-of-2024", "nvapi-..."),
    ),
)

HOSTS = (
    prefix_rule(
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_",
        size=36,
        hits=("ghp_{36}", "CI uses gho_{36} now", "ghs_{36}", "GHP_{36}", "ghr_{76}"),
        misses=("GitHub tokens begin with ghp_ or gho_", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_..."),
    ),
    prefix_rule(
        "github-token",
        "github_pat_",
        chars=r"\w",
        least=22,
        size=82,
        hits=("github_pat_{22}_{59}", "fine-grained: github_pat_11{20}_{59}!"),
        misses=("a github_pat_ is fine-grained", "github_pat_your_token_goes_right_here"),
    ),
    prefix_rule(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt- gr1348941",
        chars=r"\w.-",
        hits=("glpat-{b64u:20}", "deploy token gldt-{20}", "runner: glrt-{20}", "GR1348941{20}"),
        misses=("glpat-xxxxxxxxxxxxxxxxxxxx", "GitLab names them glpat- and gldt-", "glpat-<your-token>"),
    ),
    prefix_rule(
        "bitbucket-token",
        "atbb atctt3 atatt3 ataoa",
        chars=r"\w=-",
        least=20,
        hits=("ATBB{32}", "ATATT3x{b64u:180}", "jira: ATCTT3x{b64u:120}"),
        misses=("the ATBB prefix is Bitbucket's", "ATATT3xxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "npm-token",
        "npm_",
        size=36,
        hits=("npm_{36}", "//registry.npmjs.org/:_authToken=npm_{36}"),
        misses=("npm_config_registry is set", "npm_package_version", "npm_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "pypi-token",
        "pypi-ag",
        chars=r"\w-",
        least=32,
        hits=("pypi-AgEIcHlwaS5vcmc{b64u:120}", "twine: pypi-AgENdGVzdC5weXBp{b64u:90}"),
        misses=("pypi-agnostic-installer-for-everything-and-all", "pypi-ag..."),
    ),
    prefix_rule(
        "package-registry-token",
        "rubygems_ cio oy2 dckr_pat_ dckr_oat_ clojars_ cargo_",
        chars=r"\w-",
        least=24,
        hits=("rubygems_{hex:48}", "dckr_pat_{b64u:27}", "crates.io gave cio{32}", "nuget oy2{low:43}"),
        misses=("rubygems_mirror", "dckr_pat_xxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    prefix_rule(
        "ci-token",
        "bkua_ cci ccipat_ cci_ pul- sqp_ squ_ sqa_ snyk_ dp.pt. dp.st. dp.ct. dp.sa. phx_ cfut_ tskey-",
        chars=r"\w.-",
        least=24,
        hits=("pul-{hex:40}", "sqp_{hex:40}", "bkua_{hex:40}", "dp.pt.{43}", "tskey-auth-k{12}CNTRL-{32}"),
        misses=("pul-chritudinous-words-are-long-and-odd-ones", "sqp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    shape_rule(
        "dropbox-token",
        "sl.",
        r"(?<![\w.])sl\.(?:u\.|B)?[\w-]{60,}",
        hits=("sl.{b64u:135}", "dropbox: sl.B{b64u:120}"),
        misses=("sl.wikipedia.org is in Slovene", "sl.xxxxxxxxxxxxxxxxxxxxxxxx"),
        check=is_real,
    ),
)

RULES: tuple[SecretRule, ...] = MODELS + HOSTS + CLOUD + SERVICES + GENERIC + COMMANDS
