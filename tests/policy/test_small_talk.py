"""Small talk, for which nothing is recalled, and questions that resemble it.

Every line was written before the words that recognise it. Of 25 further lines, 3 were recognised at first sight: the
lists know what people often say, and the floor of a recall keeps most of the rest silent.
"""

from __future__ import annotations

from wellkept.memory.rules_importance import is_small_talk

SAID = """
Erzähl mir einen Witz
Raconte-moi une blague
Você pode me ajudar com uma coisa?
Kun je me ergens mee helpen?
Możesz mi w czymś pomóc?
Kan du hjälpa mig med något?
Bana yardım eder misin?
Привет, как дела?
هل يمكنك مساعدتي؟
क्या आप मेरी मदद कर सकते हैं?
ちょっと手伝ってくれる？
你能帮我个忙吗？
좀 도와줄 수 있어?
Can you help me with something?
You're awesome
Sorry, I was away for a minute
Great job on that!
Bye for now, talk tomorrow
Hello again, nice to see you
Could you give me a hand with something?
You are amazing, thank you!
Sorry for the delay, I was in a meeting
That was really helpful, thanks a bunch
Talk to you on Monday!
Nice to talk to you again
I'm so glad you're here
What's new with you?
Long time no see!
Wow, you're fast
Good work today, everyone
Kannst du mir bei etwas helfen?
Du bist großartig
Entschuldigung, ich war kurz weg
Gut gemacht, danke dir!
Tschüss, bis nächste Woche
Schön, dich wiederzusehen
Peux-tu m'aider avec quelque chose ?
Tu es génial, merci
Désolé, j'étais absent un instant
Beau travail !
Au revoir, à la semaine prochaine
Content de te revoir
¿Me puedes ayudar con algo?
Eres increíble, gracias
Perdón, estuve fuera un momento
¡Buen trabajo con eso!
Adiós, hablamos mañana
Hola de nuevo, qué gusto verte
Would you mind helping me out?
You rock!
I'm back, sorry about the wait
Nicely done, that's exactly what I wanted
Catch you later, have a great evening
Hey there, good to see you again
Do you have a moment?
That's very kind of you
I need a break, back in five
You made my day
OK, talk to you in a bit
Happy Friday, everybody!
Hast du kurz Zeit für mich?
Das hast du super gemacht
Sorry, war gerade in der Pause
Vielen lieben Dank, du bist die Beste
Mach's gut, bis Montag
Hallo nochmal, wie geht es dir heute?
Tu as une minute ?
C'est vraiment gentil, merci beaucoup
Excuse-moi, je reviens tout de suite
Bien joué, continue comme ça
Bonne soirée, à lundi
Rebonjour, ravi de te revoir
¿Tienes un minuto?
Qué amable, muchísimas gracias
Disculpa, ya estoy de vuelta
Muy bien hecho, sigue así
Nos vemos el lunes, que descanses
Hola otra vez, ¿cómo va todo?
Hope you slept well
Thanks a lot for your patience
I'll be right there
You're a real lifesaver, thanks
Wonderful, that's just perfect
Okay great, let me check
How are you feeling today?
Oh no, I'm sorry
Can I bother you for a second?
So happy to see you!
Alright, I'm off to bed
See you on Thursday, take care
Danke, das war sehr hilfreich
Guten Morgen, gut geschlafen?
Bin gleich wieder zurück
Ich wünsche dir einen schönen Abend
Wie war dein Tag?
Kannst du mir kurz helfen bitte?
Bonjour, comment allez-vous aujourd'hui ?
Merci mille fois, tu es un amour
Je dois partir, à demain
C'était très utile, merci
Tu peux m'aider s'il te plaît ?
Gracias, eres muy amable
Buenos días, ¿cómo amaneciste?
Tengo que irme, hablamos luego
¿Me ayudas con una cosa?
Perfecto, muchas gracias por tu tiempo
Qué bien, me alegro mucho
"""

ASKED = """
Can you help me with the tax form?
Could you help me find my passport number?
What's my sister's name?
Do you remember my coffee order?
When is my meeting tomorrow?
Who did I see on Monday?
What did I say about the great job offer?
Which day did we talk about the wedding?
What's new with Anna?
Nice, France?
ok Berlin?
Great Canyon trip?
Did I mention something about a minute of silence?
Where was I away last week?
How long was I away?
Was my boss awesome or awful?
What was that nice restaurant again?
What do I like to drink?
How can you reach me?
What makes me happy?
What is my job?
Is there something I wanted to buy?
How was my weekend in Rome?
What do you know about me?
What's my name?
Who am I?
Do you know where I work?
Where do I live?
Kannst du mir sagen, wann mein Termin ist?
Wo war ich letzte Woche?
Wie heißt meine Frau?
Was mag ich?
Was ist mein Beruf?
Wen habe ich am Montag getroffen?
Peux-tu m'aider à trouver mon contrat ?
Où est-ce que je travaille ?
Comment s'appelle mon chien ?
Qu'est-ce que j'aime ?
Qui est mon chef ?
¿Cómo se llama mi hermana?
¿Dónde trabajo?
¿Qué me gusta?
¿Cuándo es mi cita?
¿Me puedes ayudar con la factura?
¿Quién es mi jefe?
How old is my dog?
What time do I get up?
What did you suggest for tomorrow?
What did you mean by the second option?
What was the question I asked this morning?
Have I got a plan for the evening?
Which team am I on?
What should I bring for the party?
tabs or spaces?
coffee or tea?
my address
my birthday
favourite colour
any allergies?
dentist?
gate code
next trip
first job
next weekend trip
team work
test answer
my job today
what's the evening plan today?
Who is away today?
Was I in a meeting yesterday?
What did I need a hand with?
Am I busy on Friday?
¿Dónde estuve ayer?
Bin ich morgen beschäftigt?
Wer ist die Beste?
Wie geht es Anna?
hast du die Adresse?
Où étais-je hier ?
first aid kit
good doctor
"""


def test_courtesy_is_small_talk() -> None:
    assert [text for text in SAID.strip().splitlines() if not is_small_talk(text)] == []


def test_a_question_is_none() -> None:
    assert [text for text in ASKED.strip().splitlines() if is_small_talk(text)] == []
