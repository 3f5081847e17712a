"""English cues: what sounds like a decision, a finished task, an error, or an instruction to remember.

`CUES` adds those of the other languages.
"""

from __future__ import annotations

import re

from recollect.policy.lexicon.english import NEGATIONS
from recollect.policy.lexicon.entries import merge_cues, parse_cues
from recollect.policy.lexicon.languages import LEXICONS

_DONE = """
finished, completed, deployed, shipped, merged, fixed, resolved, released, published, delivered, sent, submitted,
uploaded, migrated, installed, configured, created, updated, upgraded, implemented, refactored, closed, booked,
scheduled, paid, renamed, removed, deleted, added, adjusted, cleaned up, set up, built, pushed, restored, reviewed,
repaired, replaced, moved, generated, saved, rolled out, rolled back, ordered, bought, signed, filed, wrote, written,
copied, archived, enabled, disabled, exported, imported, transferred, refunded, solved, ran, committed, wrapped up,
handed in, handed over, renewed, translated, tagged, inspected, drafted, edited, recorded, packed, painted, washed,
mailed, emailed, answered, replied, planted, assembled, organised, organized, connected, collected, returned, passed
on, turned in, picked up, dropped off, sorted out, checked, compiled, documented, formatted, optimised, optimized,
reset, rebooted, restarted, redesigned, rebased, reverted, provisioned, ported, patched, rewrote, rewritten, launched,
tested, verified, prepared, posted, printed, downloaded, converted, registered, cancelled, canceled
""".replace("\n", " ").strip()
_PARTS = {
    "DONE": _DONE.replace(", ", "|"),
    "DONE_WORDS": " ".join(verb.split()[0] for verb in _DONE.split(", ")),
    "WHO": r"(?:i|we|you|they|he|she|it|team|board|management|everyone|everybody|both|all)",
    "DETS": r"the|our|my|his|her|their|your|a|an|this|that|its",
    "DET": r"(?:<DETS>)",
    "SHALL": r"(?:'ll| will| shall|'re| are|'m| am| have| has|'ve)",
    "LASTING": (
        r"finished|completed|complete|done|deployed|merged|fixed|resolved|live|shipped|submitted|released|repaired"
        r"|solved|published|scheduled|booked|installed|migrated|sent|paid|delivered"
    ),
    "OPEN": (
        r"(?!need|used|based|interested|tired|excited|worried|supposed|related|indeed|speed|feed|wanted|liked|loved"
        r"|noticed|lived|worked|tried|hoped|feared|hundred|sacred|naked|bored|confused|pleased|annoyed|surprised"
        r"|red\b|bed|seed|weed|wed|fed|decided|agreed|failed|crashed|missed|heard|learned|moved)[a-z]{2,14}ed"
    ),
    "NOT_HISTORY": r"(?! (?:in|around|by|at|during) (?:the \w+ (?:century|empire)|1\d\d\d|20[01]\d))",
    "NOT_BAD": r"(?! with (?:\d+ |some |several |many |an |a few )?(?:errors?|failures?|warnings?|problems?))",
    "TECHNICAL": (
        r"load|connect|start|build|compile|parse|open|read|write|fetch|send|save|deploy|import|install|authenticate"
        r"|log ?in|render|resolve|find|create|update|delete|upload|download|run|execute|allocate|bind|mount|push|pull"
        r"|clone|sync|boot|initiali[sz]e|access|reach|print|locate|respond|complete|finish|verify|decode|encode"
        r"|commit|reproduce"
    ),
    "THING": r"(?<!\bhe)(?<!\bshe)(?<!\bi)(?<!\bwe)(?<!\bthey)(?<!\byou)",
    "START": r"(?:^|[.!?:;,(\"“–—-] ?|\b(?:and|but|so|also) )",
    "POLITE": r"(?:(?:please|pls|plz|just|always|also|then|now|ok|okay|kindly|and|so|but|hey|do|yes|well|oh),? ){0,4}",
    "NOT_TALE": (
        r"(?! ?\?|,? ?$| me\b| when\b| that (?:time|day|night|summer|winter|year|one|guy|song|trip|evening|party"
        r"|movie|film)\b| the (?:time|day|days|night|good)\b| how (?:we|it|you|they) (?:used|felt|were|was)\b"
        r"| to (?!always\b|never\b|not\b|only\b)| last\b| us\b| him\b| her\?| what\b| who\b| where\b)"
    ),
    "ASK": (
        r"(?:(?:can|could|would|will) you (?:please |also |kindly )?|(?:i want|i need|i'd like|i would like|i'd want"
        r"|we need|we want) you to (?:please |always |also )?|you (?:should|must|need to|have to) (?:always |also "
        r"|please )?|let's (?:please |also )?)"
    ),
    "KEEP": r"(?:this|that|these|it|the following|down|my|our|his|her|their|the)",
    "AMOUNT": r"\d[\d.,]{0,15} ?(?:k|m|bn|million|billion)?",
}

_UNREAL = """
    if whether unless until before once should could would might may must can will shall needs need want wants hope
    wish yet pending awaiting try trying tried i'll we'll you'll they'll it'll he'll she'll
""".split()

DECISION_BLOCKERS = (NEGATIONS | frozenset(_UNREAL)) - {"can", "may"}
COMPLETION_BLOCKERS = NEGATIONS | frozenset([*_UNREAL, *"almost nearly half partly when get going after soon".split()])
ERROR_BLOCKERS = NEGATIONS | frozenset(
    "if unless might could would should may avoid prevent handle handling fixed resolved solved when".split()
)
REFUSAL_BLOCKERS = frozenset(_UNREAL) - {"can", "may"} | {"haven't", "hasn't", "hadn't", "nobody", "take", "for"}
FAILURE_BLOCKERS = frozenset({"if", "unless", "case", "that's"})
EXPLICIT_BLOCKERS = frozenset({"don't", "not", "needn't", "never", "needless", "unnecessary"})

DECISIONS = parse_cues(
    r"""
decided: \bdecided\b
agreed: \bagreed (?:to|on|that|upon|with|not)\b|\b(?:we|all|both|parties|they|team) (?:have |has |all )?agreed\b
agreement: \b(?:reached|signed|have|made) an agreement\b
concluded: \bconcluded (?:that|to)\b
resolved: \b(?:we|they|board|council|committee|i) resolved to\b
chose chosen: \b(?:chose|chosen)\b
choose pick: ^(?:ok,? )?<WHO> (?:choose|pick)\b
opted: \bopted (?:for|to|against|out|not)\b
settled: \bsettled (?:on|for)\b
voted: \bvoted (?:to|for|against|in favou?r)\b
selected picked: \b<WHO>(?: have| has|'ve)? (?:selected|picked) (?!up\b)
decision: ^(?:the |our |my |final )?decision ?[:–—-]|\bfinal decision (?:is|was)\b
decision: \b(?:our|my|their|the|board's) decision (?:is|was) (?:to|that|made|final)\b
decision: \b(?:made|reached|took|taken|came to|have) (?:a|the|our|their|my|his|her) (?:\w+ )?decision\b
approve authorise authorize: \b(?:i|we|hereby) (?:hereby )?(?:approve|authori[sz]e)\b
approval permission clearance: \b(?:approval|permission|clearance) (?:is |was |has been )?(?:granted|given)\b
    |\b(?:approval|clearance) (?:is |was |has been )?(?:denied|refused)\b
approval permission go-ahead ahead blessing: \b(?:have|has|got|gave|given) (?:me |us |them |him |her )?(?:my|our|his
    |her|their|the
    |final)? ?(?:\w+ )?(?:approval|permission|go-ahead|blessing)\b
green: \b(?:gave|given|got|has|have|get) (?:us |it |them |me )?(?:the |a )?green light\b
greenlit lgtm ship: \bgreenlit\b|\blgtm\b|\bship it\b
ahead: (?:^|[,:;–—] ?|\b(?:yes|ok|okay|please|so|and|then) )go ahead\b
proceed: (?:^|[,:;–—] ?|\b(?:yes|ok|okay|please) )proceed (?:with|as)\b|\bwe will proceed\b
let's lets: \blet'?s (?:go with|use|adopt|choose|pick|stick with|keep|drop|switch to|move to|settle on|go for
    |do option|postpone|cancel)\b
we we'll we're i'm i'll they: \b(?:i|we|they)<SHALL> (?:now |all )?(?:going with|go with|switch(?:ing)? to|mov(?:e
    |ing) to|migrat(?:e|ing) to|adopt|use|using|standardi[sz](?:e|ing) on|stick(?:ing)? with|dropping|drop
    |deprecat(?:e|ing)|keep(?:ing)? (?:the|our)|cancel(?:ling)?|postpon(?:e|ing))(?= )
will won't: \b(?:we|i|they|company|board) (?:will not|won't|will no longer) (?:renew|extend|support|hire|pursue
    |continue|use|sign|pay|accept|ship|release|build|buy|proceed|sell|offer|change|move)\b
going: \b(?:i'm|i am|we're|we are) (?:going to (?:accept|reject|decline|take|buy|sell|hire|sign|keep|drop|cancel
    |use|stop)|not going to (?!lie|be|pretend|see|make it)\w+)\b
selected picked appointed elected nominated: \b(?:has|have|was|were|been|committee|panel|jury|board
    |team) (?:selected|picked|appointed|elected|nominated)\b
said: \bsaid (?:yes|no) to\b
final settled official: \b(?:plan|it|that|choice|date|deal|this) ?(?:is|'s) (?:now )?(?:final|settled|official)\b
decision: ^(?:the )?decision (?:is )?made\b
made: \bmade up (?:my|our|his|her|their) mind
ruled: \bruled (?:in favou?r|against|that|out)\b
ok go-ahead ahead okay: \b(?:gave|got|given) (?:us |me |them |it )?(?:the|an?|my|our|their|his|her) (?:ok|okay
    |go-ahead)\b
quitting resigning leaving taking closing hiring ending staying: \b(?:i'm|i am|we're|we are) (?:quitting|resigning
    |ending|closing (?:the|our)|hiring|leaving (?:the|my|our) (?:job|company|team)|taking the (?:job|offer|deal)
    |staying with)\b
passed: \b(?:proposal|motion|bill|law|amendment|resolution) (?:was |has )?passed\b|\bpassed with \w+ votes\b
cancelled canceled postponed: \b(?:is|are|was|were|been|has|have) (?:now )?(?:cancelled|canceled|postponed
    |called off)\b
now: \bfrom now on\b
forward: ^going forward\b
effective: \beffective immediately\b
""",
    DECISION_BLOCKERS,
    _PARTS,
)

REFUSALS = parse_cues(
    r"""
approved: \bapproved\b(?! (?:vendor|supplier|list|drug|device|brand)s?\b)
rejected denied declined vetoed refused: \b(?<!permission )(?<!access )(?:rejected|denied|declined|vetoed)\b
refused: \brefused (?:to (?:sign|approve|pay|grant|agree)|our|my|the (?:request|offer|deal)|his|her|their)\b
turned: \bturned (?:down|it down|us down|them down|me down)\b
accepted: \baccepted <DET> (?:\w+ )?(?:offer|quote|proposal|bid|invitation|terms|job|position|changes?|plan|deal
    |contract|conditions|paper|manuscript|application)\b
authorised authorized granted ratified endorsed: \b(?:authori[sz]ed|granted|ratified|endorsed)\b(?! that)
signed: \bsigned off\b
""",
    REFUSAL_BLOCKERS,
    _PARTS,
)
"""A refused approval is a decision too; a pending one is not."""

COMPLETIONS = parse_cues(
    r"""
*ed : ^(?:just |finally |successfully )?<OPEN> (?:<DETS>|all|both|every|new|v?\d+|\w+ (?:to|from|into|in|for)
    |up)\b<NOT_BAD>
i've we've have: \b(?:i've|we've|i have|we have) (?:now |just |finally |also |already |successfully )?<OPEN> (?:<DETS>
    |all|both|every|\d+|it|everything|\w+ (?:to|into|for))\b
successfully: \bsuccessfully <OPEN>\b
went: \bwent (?:live|out (?:this|on|to|today|yesterday|last))\b
passed: \bi (?:have |finally )?passed\b(?! (?:by|the (?:shop|house|station|time)|out|through))
sent: ^(?:\w+ ){1,3}sent (?:to|out)\b
ready: \b(?:report|draft|order|build|document|file|release|slides|presentation|page|export|version|\w+ing) (?:is
    |are) (?:now )?ready\b(?! (?:to|for) )
running: \b(?:is|are) (?:now )?up and running\b
got: ^(?:i |we |just |finally )*got (?:the|my|our|his|her|everything|it|all) (?:\w+ ){0,2}(?:<DONE>|<OPEN>)\b
green: \b(?:tests?|checks?|builds?|ci|pipeline) (?:is|are) (?:all |now )?green\b
<DONE_WORDS>: ^(?:ok,? |done[:,.] |great,? |just |successfully |finally )*(?:<DONE>)\b<NOT_BAD>(?! ?\?)
<DONE_WORDS>: \b(?:i|we|they|he|she|i've|we've|they've|i have|we have|they have|has|have|agent|team) (?:now |just
     |finally |also |already |have |has |all |both |successfully ){0,2}(?:<DONE>)\b<NOT_HISTORY>
<DONE_WORDS>: \b(?:has|have|'s|'ve) (?:now |just |finally |also |already |all )?been (?:successfully )?(?:<DONE>)\b
<DONE_WORDS>: \b(?:was|were|got) (?:successfully |finally |just )?(?:<DONE>)\b<NOT_HISTORY><NOT_BAD>
<DONE_WORDS> done complete live: (?<!\bi'm)(?<!\bi am)(?<!\bwe are)(?<!\bwe're)(?: is| are|'s|'re) (?:now |finally
     |all |already |successfully )?(?:<LASTING>)\b(?! (?:in|with|by|list|set|at once|on (?:mondays?|fridays?)))
successfully succeeded: \b\w{3,14}ed successfully\b|\bsuccessfully (?:<DONE>)\b|\b(?:build|deploy(?:ment)?|job|run
    |backup|import|pipeline|upload|migration) (?:has )?succeeded\b
finished completed: ^(?:the |our |my )?[\w./-]+(?: [\w./-]+)? (?:finished|completed)\b<NOT_BAD><NOT_HISTORY>
passed pass passing: \b(?:all|\d+)(?: of (?:the|our))? ?(?:\w+ ){0,2}(?:tests?|checks?)?(?: have| are
    | now)? ?(?:passed|pass|passing)\b
done finished: ^(?:all )?done[!.]$|\bi(?:'m| am) (?:now |finally )?(?:finished|done) with (?:the|my|all|our)\b
    |^(?:all )?done[:!,] \w|\b(?:got|gotten) (?:it|everything|that) done\b
""",
    COMPLETION_BLOCKERS,
    _PARTS,
)

ERRORS = parse_cues(
    r"""
error: \berrors?\b(?! (?:bars?|handling|margins?|rates?|budgets?|correction|propagation|terms?|types?|analysis|free
    |message design))(?<!and error)(?<!of error)
errors: \b(?:with|got|gets?|getting|throws?|threw|see|seeing|returns?|\d+|many|several|of|more
    |some) (?:\w+ )?errors\b(?! bars)
*error *exception: \w\w\w(?:error|exception)\b(?=[:\s(.!?,]|$)
exception exceptions: \b(?:an?|the|unhandled|uncaught|threw|throws|throwing|raised|raises|got
    |getting) (?:\w+ ){0,3}exceptions?\b(?! (?:of|to|proves|is made
    |from the rule))(?<!with the exception)(?<!make an exception)(?<!made an exception)
traceback segfault errno err panic deadlock stacktrace oom: \berr!|\btraceback\b|\bsegfault\b|\berrno\b|\bpanic:
    |\bdeadlock\b
    |\boom\b
stack segmentation core fatal: \bstack trace\b|\bsegmentation fault\b|\bcore dumped\b|^fatal\b|\bfatal[: ]\b
crash crashes crashed crashing: \bcrash(?:es|ed|ing)?\b(?! (?:course|diet|at|on (?:a|the|my|his
    |her) (?:\w+(?:'s)? )?(?:couch|sofa|floor)|the (?:party|wedding)|test))(?<!car crash)(?<!stock market crash)
failed fails failing: <THING> (?:has |have |keeps |is |are |just )?(?:failed|fails|failing)(?= ?(?:[.!?:,(]|$|with
    |because|on|again|twice|every|after|due|for|when|while|since|in|during|at|miserably|silently|and))
failed: ^failed\b|\bfailed to (?:<TECHNICAL>)\b|\bfailed (?:tests?|builds?|jobs?|checks?|login|attempts?|payments?)\b
fail: \b(?:builds?|tests?|it|this|deploy\w*|jobs?|pipeline|login|import|upload|query|script)(?: \w+)? fail\b
failure failures: \b(?:build|test|disk|power|hardware|network|authentication|login|assertion|system|deployment
    |backup|payment|\d+) failures?\b
timeout timed timing: \btimeouts?\b(?! (?:of|is|to|setting|value|option))|\btimed out\b|\btiming out\b
refused reset denied: \bconnection (?:was )?(?:refused|reset)\b|\b(?:permission|access) (?:was )?denied\b
found: \b(?:command|file|page|module|package|host|key|table|404) not found\b|\bnot found:
bug bugs: \b(?:found|hit|discovered|have|there is|there's|reported|report) (?:a|another|the|some|two
    |several) (?:\w+ )?bugs?\b(?! (?:bite|in my (?:tea|soup|room|bed)))
hangs hang hung stuck: \b(?:it|app|installer|page|process|job|build|server|script|screen|update|download|upload
    |query|browser|program|system|computer|laptop|phone|\w+er) (?:\w+ )?(?:hangs|hung|is stuck|gets stuck
    |got stuck)\b
died: \b(?:job|server|process|worker|battery|laptop|phone|disk|drive|connection|service|container|pod|node|machine
    |computer|task|script|session)s? (?:just |has |have )?died\b
broke: \b(?:update|upgrade|change|commit|release|migration|patch|refactor\w*|deploy\w*) broke\b
screen page: \b(?:blank|white|blue|black|empty) (?:screen|page)\b
unreachable unresponsive offline garbled flaky glitch malfunction faulty conflict conflicts: \b(?:is|are|was|were
    |went|goes|seems) (?:\w+ )?(?:unreachable|unresponsive|offline|garbled|flaky|faulty)\b|\bglitch|\bmalfunction
    |\bmerge conflicts?\b
keeps keep kept: \b(?:keeps?|kept) (?:crashing|disconnecting|freezing|restarting|rebooting|buffering|failing
    |hanging|stalling|logging me out|dropping|losing)\b
no: \bno such (?:file|table|host|module|command|column)\b
wrong: \b(?:is|was|'s) (?:something |\w+ )?wrong with (?:the|my|our|this)\b|\bwent wrong\b|\bgoing wrong\b
    |\breturns? (?:the )?wrong\b|\bwrong results?\b
outage corrupt corrupted unavailable: \boutage\b|\b(?:is|are|was|were|got) corrupt(?:ed)?\b|\bcorrupted\b
    |\bservice unavailable\b
down: \b(?:server|site|website|service|api|database|network|internet|system|cluster|vpn|host|it|page|app|environment
    |line|platform|portal|shop) (?:is|are
    |was|went|has been|seems) down\b
memory space disk leak leaks: \bmemory leaks?\b|\bout of memory\b|\bno space left\b|\bdisk (?:is )?full\b
exit exits exited code: \bexit(?:s|ed)? (?:with )?(?:code|status)? ?[1-9]\d{0,2}\b|\bexit(?:s|ed)? with (?:code
    |status) [1-9]
http status 500 502 503 504 404 403 401: \b(?:http|status)(?:/\d\.\d)?(?: code)? [45]\d\d\b|\b(?:40[0134]
    |50[0234]) (?:errors?|internal|bad gateway|service|gateway|not found|forbidden|unauthori[sz]ed)
broke broken freezes froze frozen: \b(?:build|pipeline|page|site|link|test|tests|deploy\w*|app|api|import|script
    |laptop|computer|screen|system|server|machine|program|printer|it|database)s? (?:\w+ )?(?:is |are |was |just
     |got )?(?:broke|broken|froze|frozen|freezes)\b(?! (?:up|down|into|out))
""",
    ERROR_BLOCKERS,
    _PARTS,
)

FAILURES = parse_cues(
    r"""
unable cannot can't couldn't could: (?:\bunable to|\bcannot|\bcan't|\bcouldn't
    |\bcould not) (?:<TECHNICAL>)\b(?! (?:my (?:keys|glasses|way)|the (?:words|time)))
work working works stopped: \b(?:not working|(?:does not|doesn't|don't|do not|didn't|did not|won't
    |no longer) work(?:s)?)\b(?! (?:on|for|at|here|there|from|as|in|this|next|today|tomorrow|every|until
    |weekends)\b)|\bstopped (?:working|responding|loading|syncing|charging)\b|\bno longer works\b
won't: \bwon't (?:turn on|start|boot|open|load|connect|charge|print|compile|respond|run|build|install|sync|close
    |save|update)\b
won't doesn't didn't don't not isn't aren't: \b(?:doesn't|does not|don't|didn't|did not|won't) (?:load
    |start|open|respond|show up|display|appear|render|compile|connect|save|sync|print|charge|go through|run (?:last
    |on|any|since|at)|boot|build|launch)\b|\b(?:isn't|aren't) (?:working|responding|loading|starting|syncing
    |charging)\b
nothing: \b(?:button|link|command|click\w*|it|key|script|page) (?:does|do|did) nothing\b|\bnothing happens\b
repository: \bnot a git repository\b
""",
    FAILURE_BLOCKERS,
    _PARTS,
)
"""Failures that are expressed by a negation."""

COUNTED_FAILURES = re.compile(r"\b[1-9]\d* (?:\w+ )?(?:failed|failures?|errors?)\b")
"""Failures among many successes; they outweigh the completion."""

YES_NO_STARTS = frozenset(
    "did does do is are was were has have had can could will would should may might shall any am isn't aren't".split()
    + "didn't doesn't don't wasn't weren't hasn't haven't".split()
)
"""First words of questions that ask whether something happened instead of reporting it."""

DEFINITION = re.compile(r"^(?:what (?:does|is|are|do)|what's|who|where|which|explain)\b(?!.*\b(?:i|my|we|our|me)\b)")
"""Questions about the meaning of a word rather than about an event."""

REMEMBER = parse_cues(
    r"""
remember: <START><POLITE>remember\b<NOT_TALE>
""",
    EXPLICIT_BLOCKERS,
    _PARTS,
)
"""Bare imperative; with a question mark it starts a story: "Remember how cold it was?"."""

EXPLICIT = parse_cues(
    r"""
remember: (?:^|[.!?:;,(–—-] ?|\b(?:and|but|so|also|please|hey|ok) )<ASK>remember (?:that|this|these|my|our
    |the following|it|to (?:always|never|not|only)|i|we|how i|how we|all of this|for)\b(?! (?:time|day|night|summer
    |year|one|guy|song|trip) )
forget: (?:<START><POLITE>|<ASK>)(?:don't|do not|never|not)(?: ever)? forget(?:,| that| this|:| my| our| i\b| i'm
    | we\b| the fact)(?!\?)
mind: <START><POLITE>(?:<ASK>)?(?:keep|bear|have) (?:in mind|(?:this|that|it|these) in mind)
note: <START><POLITE>(?:<ASK>)?(?:make|take|keep) (?:a )?(?:mental )?note (?:of (?:this|that|the|my|our|these)|that
    |to self)|<START><POLITE>(?:take note\b|note (?:this|that) down|note to self)
note: <START><POLITE>(?:make a note|take a note|make note)[:.,]
write jot note: <START><POLITE>(?:<ASK>)?(?:write|jot|note) (?:this|that|it|the following) down\b
save store keep log record put: <START><POLITE>(?:<ASK>)?(?:save|store|keep|log|record
    |put) <KEEP>(?: \w+)? (?:for (?:later|future|next|the future|ever|good)|(?:to|in|into) (?:your |long[- ]term
     |the )?(?:memory|memories|notes))\b
memory memories notes: <START><POLITE>(?:<ASK>)?(?:add|commit|save|store) (?:this|that|it|these|the following
    |my \w+) (?:to|in) (?:your |the |long[- ]term )?(?:memory|memories|notes)\b
memorize memorise: <START><POLITE>(?:<ASK>)?memori[sz]e\b(?=:| this| that| my| the following| these)
reference: <START><POLITE>for (?:your )?(?:future|later) reference\b
""",
    EXPLICIT_BLOCKERS,
    _PARTS,
)


_CURRENCIES = "usd|eur|gbp|chf|jpy|dollars?|euros?|bucks|cents|quid|francs?|yen|rupees?"
MONEY = re.compile(
    rf"(?:[$€£¥₹]|\b(?:usd|eur|gbp|chf|us\$)) ?\d|{_PARTS['AMOUNT']} ?(?:[€£¥₹]|(?:{_CURRENCIES})\b)"
    r"|\b(?:budget|invoice|price|salary|payment|refund|rent|fee|deposit|loan|mortgage)\b(?: \w{1,30}){0,4}"
    rf" {_PARTS['AMOUNT']}\b(?! ?(?:%|percent|days?|weeks?|months?|years?|hours?))"
)
"""Amounts of money in figures; "pounds" alone may be a weight."""

MONEY_IN_WORDS = re.compile(r"(?:hundred|thousand|illion|ty) (?:dollars|euros|pounds|francs|yen)\b")

APPROVAL = re.compile(r"\b(?:approv(?:e|es|ed|al|als|ing)|sign(?:ed)?[- ]off|authori[sz]ation|go-ahead)\b(?! rating)")
PERSONAL = re.compile(
    r"\b(?:my name is|i (?:prefer|live|work|hate|love|always|never|usually|am)|i'm (?:allergic|vegan|based|a\b)"
    r"|my (?:favou?rite|wife|husband|partner|birthday|address|daughter|son|boss|manager)|call me)\b"
)
"""Facts about the user, which are recalled most often."""

_ENGLISH_CUES = {
    "explicit": EXPLICIT,
    "remember": REMEMBER,
    "decision": merge_cues([REFUSALS, DECISIONS]),
    "task_completion": COMPLETIONS,
    "error": merge_cues([FAILURES, ERRORS]),
}

CUES = {
    name: merge_cues([table, *(lexicon.cues[name] for lexicon in LEXICONS if name in lexicon.cues)])
    for name, table in _ENGLISH_CUES.items()
}
"""Cues of all languages; their words are too different to be confused."""
