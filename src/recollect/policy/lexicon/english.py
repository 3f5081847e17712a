"""English."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.policy.lexicon.entries import Lexicon, split_phrases, split_words

FIRST_PERSON = split_words("i my mine our ours i'm i've i'd i'll im ive")
SECOND_PERSON = split_words("you your yours yourself you're you've you'd you'll u ur youre yourselves")

NEGATIONS = split_words(
    """
    not no never none nobody nothing without neither nor cannot hardly barely zero 0 isn't aren't wasn't weren't don't
    doesn't didn't haven't hasn't hadn't won't wouldn't can't couldn't shouldn't needn't mustn't
    """
)

COURTESIES = split_words(
    """
    for that this your you it was is it's that's have had a the my very at all lovely nice great good fine quick safe
    evening day weekend night morning afternoon trip helpful useful help work job so too much really just as and again
    always kind kindly super extremely feedback patience support pretty here wonderful answer reply explanation
    question one
    """
)
"""Words that add no information to small talk: "thanks *for your help*"."""

ENGLISH = Lexicon(
    code="en",
    common=FIRST_PERSON
    | SECOND_PERSON
    | split_words(
        """
        a an the and or but if then so than that this these those there here we us me myself he him his she her hers it
        its they them their theirs who whom whose which what when where why how is am are was were be been being do
        does did doing done have has had having will would shall should can could may might must of in on at by for
        with about from to into as not no nor too very just isn't aren't wasn't weren't don't doesn't didn't haven't
        hasn't hadn't won't wouldn't can't couldn't shouldn't it's that's he's she's we're they're we've they've we'll
        they'll he'll she'll it'll there's here's what's who's how's where's let's let up out over off down again also
        some any all each every both few more most other such only own same one ones because until while through during
        before after above below between under else even ever yet still already though although since without within
        thats theyre theres whats hes shes dont doesnt didnt isnt wasnt cant wont couldnt wouldnt havent hasnt arent
        werent shouldnt lets yall ya yknow well
        """
    ),
    typical=split_words(
        """
        user users uses prefers prefer likes hates wants lives runs works owns calls writes reads speaks deploys ships
        meets meeting every week month year production customer server database
        """
    ),
    negations=NEGATIONS,
    question_words=split_words(
        """
        what when where why how who whom whose which did does do is are was were has have had can could will would
        should may might shall any am isn't aren't didn't doesn't don't wasn't weren't hasn't haven't what's who's
        how's where's when's
        """
    ),
    first_person=FIRST_PERSON,
    second_person=SECOND_PERSON,
    relations=split_words(
        """
        brother sister mother father mom mum mommy dad daddy parents parent son daughter kid kids child children baby
        husband wife partner boyfriend girlfriend fiance fiancé fiancée uncle aunt cousin nephew niece grandma grandpa
        grandmother grandfather grandparents grandson granddaughter family friend friends roommate neighbor neighbour
        boss manager colleague coworker coworkers team company client customer customers vendor supplier dog cat puppy
        kitten pet pets horse teacher doctor dentist therapist coach landlord twins ex job wedding engagement promotion
        house apartment flat school college university degree exam surgery pregnancy diagnosis scholarship
        """
    ),
    dates=split_words(
        """
        monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
        saturdays sundays january february april june july august september october november december yesterday
        tomorrow ago deadline birthday anniversary tonight
        """
    ),
    reactions=split_words(
        """
        wow whoa woah wowza oh ooh ohh aw aww awww ah ahh aha haha hahaha hahahaha hehe lol lmao rofl omg omfg yay yayy
        woohoo hooray hmm hm hmmm uh um mhm ugh yikes oops eh huh yes yeah yea yep yup yess nope nah ok okay okey k kk
        alright right sure certainly absolutely definitely totally exactly indeed agreed agree true truly correct
        precisely nice nicely cool neat sweet great greatly awesome amazing amazingly incredible incredibly fantastic
        fabulous wonderful wonderfully excellent brilliant superb perfect perfectly lovely beautiful beautifully
        gorgeous stunning breathtaking magnificent marvelous spectacular phenomenal epic fun funny hilarious
        interesting fascinating exciting excited thrilling thrilled inspiring inspirational inspired inspire impressive
        impressed cute adorable delicious yummy tasty refreshing relaxing peaceful soothing calming cozy charming
        rewarding fulfilling meaningful powerful uplifting encouraging heartwarming touching special unique
        unforgettable memorable delightful enjoyable pleasant terrific outstanding remarkable extraordinary good better
        best bad worst fine well happy happier glad proud sad sorry tough rough hard difficult terrible horrible awful
        scary scared crazy insane wild weird strange unreal lucky blessed grateful thankful appreciate appreciated
        congrats congratulations kudos bravo cheers thanks thank thx ty welcome pleasure sounds sound sounded seems
        seem like liked love loved loves loving enjoy enjoyed enjoying hope hoping hopefully wish wishing bet guess
        suppose imagine believe wonder curious understand understood really so very super extremely quite pretty rather
        maybe perhaps probably actually honestly literally seriously basically especially obviously clearly anyway
        though also luck friend buddy bro sis mate hey hi hello hiya bye goodbye cya ttyl care chill vibe vibes energy
        spirit attitude mindset passion dedication strength courage creativity talent talented supportive success
        successful achievement accomplishment accomplished inspiration smile hugs hug fingers crossed wait worth sense
        total complete completely pure sharing deserve deserved deserves well-deserved hang rock rocks nailed killing
        crushing helpful useful doubt worries worry wrong course couldn't wouldn't haven't challenging important impact
        positive positivity difference bright brighten joy joyful happiness peace reassuring comfort comforting comfy
        dope lit fire sick solid clever smart wise brave strong creative generous thoughtful beyond everything's that'd
        must've should've could've would've gonna wanna kinda sorta cuz coz bc tho thru tbh imo ikr idk btw np yw
        hehehe whatever nevermind unclear look looks looked looking feel feels feeling felt think thinking thought know
        knowing hear hearing heard see seeing tell mean means going keep keeping way too much lot lots kind sort things
        something everything stuff now always never ever people dang damn darn ngl aint smh bruh heck freaking freakin
        sucks fair valid bummer jk wtf fr ofc def prob probs nvm welp gosh goodness jeez geez lolol ahaha trueee yesss
        yeahh nooo uhh uhhh uhm ohhh ooo oooh mmm deal jealous relatable legit rip hbd gratz grats gotcha sweetie dear
        hun
        """
    ),
    light=split_words(
        """
        please pls say saying said talk got get getting gotta go goes kept up make makes making take takes taking give
        gives giving bring brings have having want wants need needs many bit little thing anything nothing someone
        anyone everyone everybody anybody time times day days night morning evening afternoon weekend week weekends
        today later soon often sometimes forward job work works working plan plans idea ideas point question view
        moment moments experience experiences memory memories story stories life world person guys man dude girl effort
        efforts skills skill support supporting progress journey adventure dream dreams goal goals heart new old big
        small long first next last another different whole full real such what share shared update news details picture
        pictures photo photos pic pics image shot video chance opportunity part place places spot try trying help helps
        helping let happen happened happening happens start started find finding found learn learning remind reminds
        brought turn turned come came stay check minute second problem problems matter fact reason reasons questions
        answer mind use used challenge challenges meaning end side ends
        """
    ),
    phrases=split_phrases(
        """
        i know, i know right, i see, i agree, i totally agree, i completely agree, i think so, i think so too, i guess,
        i guess so, i hope so, i hope, i bet, i love it, i love that, i love this, i love your, i like it, i like that,
        i like your, i'm glad, i'm so glad, i'm really glad, i'm happy for you, i'm so happy for you, i'm proud of you,
        i'm so proud of you, i'm sorry, i'm so sorry, i'm sorry to hear that, i'm sorry to hear, i'm here for you, i'm
        excited for you, i'm so excited for you, i'm happy to hear, i'm glad to hear, i appreciate it, i appreciate
        that, i appreciate you, i appreciate your, i hear you, i feel you, i understand, i can imagine, i can see, i
        can only imagine, i can't imagine, i can't wait, i couldn't agree more, i totally get, i get it, i get that, i
        totally get it, i completely understand, i totally understand, i hope you, i mean, i wish you, i really
        appreciate, i admire your, i bet you, i believe in you, i'm here, i'm here to help, i'm rooting for you, i'm
        sure, i'm sure you, i'm sure you'll, i'm all ears, i'm good, i'm fine, i'm doing well, i'm doing good, i'm
        curious, i'd love to hear, i'd love to see, i'd love to, i'd love to hear more, i'm impressed, tell me more,
        tell me, tell me about, let me know, show me, remind me, my pleasure, my goodness, my god, oh my, my bad, my
        friend, me too, excuse me, count me in, believe me, trust me, for me, made me, makes me, i've heard, i am good,
        i am fine, i am glad, i am so glad, i am so happy for you, i am happy for you, i am sorry, keep me posted, keep
        me updated, to me, i think, i don't know, i dont know, i do not know, i have no idea, i'm not sure, im not
        sure, i am not sure, i wonder, i feel like, i'd say, i would say, i suppose, i believe, i don't think so, i
        don't remember, i can't remember, i can't believe, i never knew, i had no idea, i never thought about it, i was
        wondering, i was just wondering, i was thinking, i didn't know, i didn't know that, i wish i could, i would
        love to, i'll think about it, i was gonna say, i was going to say, i could see, great job, good job, nice job,
        amazing job, well done, job well done, for my part, in my opinion, im glad, im so glad, im happy for you, im
        sorry, im good, im fine, im curious, im sure, let me see, i can tell, i can relate, i can totally relate, i've
        never heard of it, i've never heard of that, i'm listening, i'm jealous, i'm so jealous, i'm interested, i hope
        that, i don't mind, i would agree, i kind of agree, i disagree, i mean that, i dunno, gimme a sec, good for
        you, good for them, no idea, no clue, no way, for real, on that note, same here, same tbh, me neither, not
        really, not much, not gonna lie, who knows, i know what you mean, i see what you mean, i forgot about that, i
        get what you mean
        """
    ),
    greetings=split_phrases(
        """
        hi, hello, hey, hiya, howdy, yo, greetings, good morning, morning, good afternoon, good evening, good night,
        night, bye, bye bye, goodbye, see you, see ya, thanks, thank you, thx, ty, cheers, many thanks, thanks a lot,
        welcome, welcome back, sorry, ok, okay, yes, no, great, sure, nice, see you on
        """
    ),
    small_talk=split_phrases(
        """
        k, yep, yup, yeah, ya, nope, nah, right, all right, alright, alright then, fine, cool, neat, sweet, wow, oh,
        ah, aha, hm, hmm, mhm, uh huh, lol, haha, hehe, omg, got it, i see, understood, noted, makes sense, that
        makes sense, sounds good, sounds great, looks good, perfect, excellent, awesome, amazing, brilliant,
        wonderful, fantastic, super, lovely, good, well done, nice one, good one, interesting, fair enough, no
        problem, no worries, not a problem, don't worry, of course, certainly, absolutely, definitely, exactly,
        indeed, true, agreed, same here, me too, you're welcome, you're very welcome, you are welcome, my pleasure,
        anytime, any time, happy to help, glad to help, glad i could help, glad to hear that, glad to hear it, great
        to hear, how are you, how are you doing, how are you today, how's it going, how is it going, what's up, i'm
        fine, i'm good, doing well, i'm doing well, not bad, nice to meet you, pleased to meet you, see you
        tomorrow, see you later, see you soon, see you then, talk soon, talk later, talk to you later, talk to you
        soon, ttyl, take care, enjoy your day, enjoy your weekend, hope you are well, hope you're well, good luck,
        congrats, congratulations, happy birthday, let me know if you need anything else, let me know if i can help,
        how can i help you today, how may i help you, what can i do for you, sure thing, you too, same to you, i
        understand, good to know, take your time, thanks a million, thanks a ton, i think so, i guess so, why not,
        my apologies, no rush, likewise, feel free to ask, i'm here to help, anything else, is there anything else,
        appreciate it, i appreciate it, much appreciated, you're the best, done, all done, all good, that's all,
        that's it, that works, works for me, will do, on it, one moment, please, no thanks, no thank you, not now,
        please do, just a moment, just a second, hold on, nevermind, never mind, whatever, sorry about that, my bad,
        oops, yay, there, everyone, everybody, team, guys, folks, friend, buddy, mate, a lot, too, then, today, and
        you, well, see you next week, have a, hope you had, great question, good question, how can i help, how can i
        help you, can you help me, could you help me, help me, i need help, what can you do, what can you do for me,
        what do you do, who are you, what are you, what's your name, what is your name, are you a bot, are you a
        robot, are you human, are you real, are you there, are you still there, is anybody there, is anyone there,
        can you hear me, do you hear me, who am i talking to, which model are you, what model are you, how does this
        work, how do you work, what do you mean, what does that mean, i don't understand, i didn't understand, i
        don't get it, i didn't get that, say that again, can you say that again, could you say that again, say it
        again, come again, repeat that, repeat it, can you repeat that, could you repeat that, rephrase that, could
        you rephrase that, try again, can you try again, could you try again, do it again, make it shorter, shorter,
        explain that, explain it, tell me more, go on, go ahead, continue, carry on, keep going, next, stop, wait,
        hang on, hang on a second, hang on a minute, give me a second, give me a minute, one second, let me think,
        let me think about it, let me see, i'm not sure, i'm not sure yet, not sure, not sure yet, i don't know,
        maybe, maybe later, later, good point, fair point, i agree, i disagree, fine by me, fine with me, sounds
        good to me, that's wrong, that's not right, that's not what i asked, that's not what i meant, i'm back, i'm
        here, i'm off, i have to go, i have to go now, i must go, i've got to go, gotta go, i'll be back, i'll get
        back to you, let's wrap up, let's stop here, let's continue, let's continue tomorrow, let's go on, let's
        start, let's begin, let's get started, just testing, testing, test, lgtm, phew, ugh, tell me a joke, tell me
        something, any questions, any news, hurry up, can i ask you something, can i ask a question, i have a
        question, quick question, i'd like to speak to a human, i want to talk to a human, talk to a human, speak to
        a human, that's it for today, that's all for today, that's all for now, i have everything i need, that's all
        i need, tomorrow, happy new year, merry christmas, how was your day, how was your weekend, to me, to you
        """
    ),
    courtesies=COURTESIES,
    fillers=frozenset(),
)


def group_words(groups: str) -> Mapping[str, str]:
    """Map each word to the first word of its group; groups are separated by commas."""
    word_groups = [group.split() for group in groups.split(",")]
    return {word: group[0] for group in word_groups for word in group}


SURE_NEGATIONS = NEGATIONS - {"zero", "0"} | {"stopped", "refuses"}
"""Words that negate a statement; a number does not."""

FACTS = group_words("""
    1 first 1st, 2 two second twice 2nd, 3 three third 3rd, 4 four fourth 4th, 5 five fifth 5th, 6 six sixth 6th, 7
    seven seventh 7th, 8 eight eighth 8th, 9 nine ninth 9th, 10 ten tenth 10th, 11 eleven, 12 twelve dozen, 15
    fifteen, 20 twenty, 30 thirty, 40 forty, 50 fifty, 100 hundred, 1000 thousand, million, billion, half, usd $
    dollar dollars, eur € euro euros, gbp £, jpy ¥ yen, percent %, monday mondays mon, tuesday tuesdays tue tues,
    wednesday wednesdays wed, thursday thursdays thu thurs, friday fridays fri, saturday saturdays, sunday sundays,
    weekend weekends, january jan, february feb, march, april apr, june jun, july jul, august aug, september sep sept,
    october oct, november nov, december dec, today, tomorrow, yesterday, hourly, daily, weekly, monthly, yearly
    annually, morning mornings, noon, afternoon, evening evenings, night nights, midnight, only solely exclusively,
    some sometimes occasionally partly, all, most mostly, rarely seldom, except unless, if, was were had used
    formerly, will shall, maybe might could perhaps possibly probably, should must, before, after, until, since,
    above, below, under, inside, outside, against, up, down, off, out, north, south, east, west, left, right, more,
    less, least
""")
"""Words that are facts by themselves, in groups; texts with different ones do not say the same."""

ALIASES = group_words("""
    postgresql postgr, javascript js, typescript ts, kubernet k8s, databas db, product prod, configur config,
    repositori repo, applic app, document doc, develop dev, environ env, prefer favor favour, photo pictur photograph,
    begin start, big larg, buy purchas, live resid, everi each, phone telephon, messag msg, email mail
""")
FILLERS = frozenset(
    """
    user also just really realli very quite please pleas current still kind actual well now henceforth correct sorri
    updat anymor longer meanwhil note fact get got so then basic simpli general usual typic oh hi hello ok nowaday
    """.split()
)
"""Stems that do not change the meaning of a text."""

DIRECTIONS = frozenset("over than to from before after by into instead but while whereas".split())
"""Words whose left and right side cannot be exchanged."""
