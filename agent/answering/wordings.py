"""Wordings of each kind of question, a line each; what the letters stand for is said in `questions`."""

from __future__ import annotations

from collections.abc import Mapping


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


WORDINGS: Mapping[str, tuple[str, ...]] = {
    kind: _lines(text)
    for kind, text in {
        "why": """
            why does U flip
            why does U matter
            why does U change the answer
            explain U
            U
            what is U
            what is the role of U
            what does U do
            what is so special about U
            what is the evidence for U
            why is U an agonist
            why is U needed
            why does the answer break when U is ablated
            give the reasons for U
            how does U cause the flips
            is U an agonist
            is U a neuron that matters
            does U matter
            is U important
            show U
            details on U
            U in detail
            what do you know about U
            why did U break answers
            what is the job of U
            what is the purpose of U
            what is the function of U
            what is going on with U
            what makes U important
            why should I care about U
            what have you found out about U
            what is known about U
            how does U influence the answer
            what is the story of U
            why do the sums fail without U
            what is U good for
            what is U responsible for
            what role does U play
            why does U matter so much
            how did you conclude that U matters
            what did you find about U
            what evidence do you have for U
        """,
        "strongest": """
            which unit is the strongest
            what is the best unit
            which unit matters most
            which unit has the largest effect
            who is the top agonist
            strongest unit
            name the most important neuron
            which neuron flips the most
            which one is the strongest
            what is the second strongest unit
            the most influential unit
            the unit that breaks most
            what is the number one unit
            who is the winner
            which unit breaks the most sums
            which unit is most harmful when ablated
            which unit does the model need most
            which is second
            the second strongest
        """,
        "summary": """
            what was found
            what did you find
            summary
            summarise the run
            what are the results
            what are the findings
            main result
            what is the conclusion
            give an overview of the run
            what came out
            what did you learn
            what is the takeaway in a sentence
            report
            what is the bottom line
            what is the main finding
            in one sentence what came out
            what are the key results
            anything interesting
            sum it up
            what happened in this run
            what is the outcome of the experiment
            explain the results
            explain the result to a child
            explain it simply
            give the result in simple words
            what does it all mean
            so what
            what is interesting here
            what is the answer
            what did the run show
            what was the result of the search
            what did the analysis show
        """,
        "units": """
            which units were found
            list the agonists
            list the units
            which neurons matter
            which units are localized
            which neurons are important
            which neurons flip answers
            show the table of units
            what units did you find
            all agonists
            which are they
            name the units that were found
            which units are responsible for the answers
            which units turned out to be agonists
            names of the units
            which ones did you find
            any important units
            which components are responsible
            what are the important units called
            which units break the model
            which units are agonists
            which units reach τ
            which units are above the threshold
            who are they
            which ones
        """,
        "when": """
            when does U flip
            under what conditions does U flip
            when does U matter
            on which kind of records does U flip
            what kind of problems does U break
            in which cases does U break the answer
            for which inputs does U matter
            when is U needed
            what do the flipped records of U have in common
            what is the ceiling of U
            which sums does U break
            what type of problems go wrong without U
            is there a pattern in the records that U breaks
            in what situations does U matter
            on what sort of sums does U cause errors
            which circumstances make U flip
            when exactly is U needed
            what characterises the sums that U breaks
            where does U matter
            for what kind of problems is U necessary
            are there certain sums that U breaks
            what do the sums that fail without U have in common
            which type of prompts is affected by U
        """,
        "strength": """
            how strong is U
            how many records does U flip
            how much does U flip
            how many examples flip when U is ablated
            what share of the records does U flip
            what is the flip rate of U
            what percentage of answers does U break
            how big is the effect of U
            effect size of U
            strength of U
            does U reach the threshold
            how many sums break without U
            how many answers change without U
            what happens when U is ablated
            what happens if U is removed
            how often does U flip
            how many flips on D+ and D- has U
            how many D+ records does U flip
            what is the impact of U
            how big an effect has U
            how many sums does U break
            how many answers get wrong without U
            what proportion does U flip
            is U above the threshold
            how far is U from the threshold
            number of flips of U
            U flips how many
            how much damage does U do
            how much does U matter
            how important is U
            how many right answers are lost without U
            by how much does the accuracy drop without U
            how many of the records flip because of U
            flips of U
            flip counts of U
            how many flips does U have
            what is the count for U
            is that a lot
            is it a large effect
            what fraction of the answers does U flip
        """,
        "examples": """
            show an example of U
            give a few sums that U breaks
            give me some examples that U flips
            show an example
            example
            give a concrete example before and after
            which records does U flip
            list the records that flip without U
            what does the model answer without U
            show before and after for U
            concrete case where U breaks the answer
            can I see some flipped answers
            show flipped records
            what does the model say instead
            for instance
            show some sums which go wrong without U
            list a couple of flipped problems for U
            before and after for U
            demonstrate it
            any example
            illustrate with an example
            an example of a flip
            sample of the broken answers
            which answers change without U
            show me what goes wrong without U
            show some sums which U gets wrong when ablated
            example please
            show one
            an example please
        """,
        "breaks": """
            what breaks without U
            what goes wrong when U is ablated
            which digit changes when U is ablated
            which token changes first without U
            which digit does U break
            what kind of mistakes does the model make without U
            how do the wrong answers of U look
            what part of the answer does U break
            which digit
            which position of the answer is affected by U
            how is the answer wrong without U
            what kind of error appears when U is ablated
            which digit goes wrong without U
            what type of error does U cause
            is it the units digit or the tens digit that breaks
            which part of the number changes
            which token flips first
            how does the answer change when U is ablated
            what do the broken answers look like
            is the sign or a digit wrong
            what exactly goes wrong
            what kind of mistakes does U cause
            what error does U cause
            which digit is hit
            is it the last digit
            what is the most common change without U
            which digit breaks first without U
        """,
        "prediction": """
            how well does first-order predict U
            how well are the flips of U predicted
            can the flips of U be predicted
            how good is the prediction of U
            does first-order explain U
            what does the lead say about U
            is U predictable from the gradient
            how well does the drop predict U
            what is the MCC of first-order for U
            why is the MCC so high
            why is the MCC 1.00
            is the perfect MCC suspicious
            what is wrong with an MCC of 1
            MCC too good to be true
            is U predictable
            does the gradient predict when U flips
            how good is the linear estimate for U
            can you foresee the flips of U
            do drop and lead predict the flips of U
            is U flip explained by its drop
            what is the first-order MCC of U
            does the drop exceed the lead on flips of U
        """,
        "responds": """
            what does U respond to
            what drives U
            what triggers U
            what makes U fire
            what activates U
            when is the drop of U large
            which inputs drive U
            which property makes the drop of U large
            what is U sensitive to
            what does U detect
            what turns U on
            which features drive U
        """,
        "reads": """
            what does U read
            what does U attend to
            what information does U use
            what is the input of U
            where does U look
            what does U take in
            where does U get its information from
            what comes into U
            which positions does U look at
            which units feed U
        """,
        "writes": """
            what does U write
            what does U push
            what does U put into the residual stream
            which tokens does U raise
            which tokens does U promote or lower
            what is the output of U
            what does U add to the logits
            which digits does U favour
            which tokens does U push up or down
            what does U output
            which digits does U suppress
            how does U change the logits
            what direction does U write
            what value does U have on flipped records
            activation of U
            what is the value of U
            what is the replacement value of U
            which token does U push the model to say
            which digits does U raise and lower
            how far does U move the logit
        """,
        "through": """
            through which units does U act
            how does U work
            does U act directly or through other units
            is the effect of U direct
            what lies between U and the answer
            what is downstream of U
            does U go through later layers
            what mediates the effect of U
            how does the effect of U reach the answer
            what is the mechanism of U
            path of U
            which units come after U
            how does U influence the final answer
            does U pass through other layers
            is the influence of U direct
            which layers carry the effect of U
            how does U get to the output
            explain the mechanism of U
            which route does the effect of U take
            is there anything above U
            what comes after U
        """,
        "sure": """
            how sure is U
            how sure are you about U
            how certain is U
            how confident are you in U
            how reliable is U
            how confident can I be about U
            is U well supported
            how solid is U
            how trustworthy is the claim about U
        """,
        "unit-chance": """
            could U be chance
            is U statistically significant
            is the effect of U significant
            is U just noise
            what is the p-value of U
            p-value
            is that significant
            is that statistically significant
            is U a fluke
            is U a lucky draw
            could the flips of U be a coincidence
            maybe U is noise
            is the effect of U real
            is U real or noise
            how likely is U by chance
            is U effect distinguishable from chance
            can U be explained by luck
            significance of U
        """,
        "unit-selective": """
            is U selective
            how selective is U
            what is the selectivity of U
            does U flip more on D+ than on D-
            does U prefer D+
            is U specific to D+
            does U flip one slice more than the other
            does U follow the splitter
            does U only matter on D+
            is U the same on D+ and D-
            where is U stronger on D+ or D-
            is U more important where the splitter fires
        """,
        "property": """
            does U flip C more
            does U hurt C more than C
            has U about C
            has U something to do with C
            is U about C
            is U a C unit
            is U a C detector
            does U matter for C
            is U responsible for C
            does U break C
            does U care about C
            does U only affect C
            how many C does U flip
            does U handle C
            is the flip of U related to C
            how does U do on C
            what about C for U
            is U more important for C
            is U involved in C
            does U compute C
            flips of U on C against C
            which does U flip more C or C
            is the effect of U stronger for C
            does U affect C more
            is U specialised in C
            is U a C neuron
            does U break more C or more C
            how often does U flip C
            does U treat C and C differently
            is U needed for C
            is U linked to C
            does U flip mostly C
            is U only about C
            how many of the flips of U are C
            does U fail on C
            is there a relation between U and C
            does U prefer C
            is U stronger on C
            what does U do to C
            does U flip when there is C
            does U harm C
            where does U do more harm C or C
            flip rate of U on C
            does U break C as often as C
            why does U flip on C
            what about C
            how many records does U flip on C
            does U flip on C
        """,
        "covers": """
            what else does the rule of U cover
            when does the rule of U fire
            on how many records does the rule of U apply
            how many records does the rule of U cover
            which other records does the rule of U hold on
            what does the rule cover
            what else does this rule cover
            how often does the rule of U fire
            on which records is the rule of U true
            what does the rule of U apply to
            coverage of the rule of U
        """,
        "disguise": """
            is the rule of U the splitter in disguise
            does the rule of U differ from the splitter
            is the rule of U the same as the splitter
            is the rule of U identical to the splitter rule
            compare the rule of U with the splitter
            how much do the rule of U and the splitter agree
            does the rule of U only repeat the splitter
            is the rule just the splitter again
            is the rule of U simply the splitter
            is the rule of U any different from the splitter
            does the rule of U restate the splitter
            is that not just the splitter
        """,
        "flip": """
            would U flip on P
            does U flip P
            what happens to P without U
            what is P without U
            what if the prompt were P for U
            what does the model answer to P when U is ablated
            ablate U on P
            try P without U
            P without U
            does P break without U
            is P still right without U
            what would the model say to P if U were removed
            U on P
            does U matter for P
            P
            what does the model say to P when U is ablated
            would P still be right without U
            what is the answer to P if U is ablated
            how does U affect P
            what comes out of P with U removed
            run P with U ablated
            compute P without U
            is P affected by U
            what would happen to P if we remove U
            can the model still solve P without U
            and P
            what does the model answer to P
            what is P
            can the model solve P
            is P right
            what happens to P
            would the answer to P change
            does the answer to P change when U is ablated
            if U is removed does P still work
            P if U is ablated
        """,
        "versus": """
            is U stronger than U
            which is stronger U or U
            compare U and U
            compare U with U
            U versus U
            do U and U flip the same records
            how similar are U and U
            do U and U break the same sums
            overlap of U and U
            how many records do both U and U flip
            does U flip more than U
            is U more important than U
            what is the difference between U and U
            does U share flips with U
            which of U and U matters more
            how much do U and U overlap
            do both U and U flip the same problems
            which one is stronger
            do U and U do the same thing
            are U and U different
            which has the larger effect U or U
            how are U and U related
            how does U compare to U
            is U as strong as U
            same records for U and U
            which of the two units is stronger
            which of them is stronger
            Jaccard of U and U
            common flips of U and U
            tell U and U apart
            how many sums do U and U have in common
            is the difference significant
            are they different
            do they share records
            what do they have in common
            which records do both U and U flip
            which sums are flipped by both U and U
            what do U and U share
            is U different from U
        """,
        "layer": """
            is layer L as a whole worse than its best unit
            what happens if layer L is ablated
            how strong is layer L
            does layer L as a whole flip more than U
            compare layer L with U
            what happens without the whole layer L
            how many records does layer L flip
            is layer L important
            what is the strongest unit of layer L
            what is the strongest head of layer L
            remove the whole of layer L
            how accurate is the model without layer L
            what remains of the accuracy without layer L
            effect of layer L
            how much does layer L matter
            how bad is it to remove layer L
            is layer L important at all
            how much damage does it do to ablate layer L
            what does ablating all of layer L do
            what about layer L
            layer L
            which units matter in layer L
            what if all of layer L is gone
            how well does the model do without layer L
            do we need layer L
            can the model work without layer L
            does layer L matter
            how many agonists are in layer L
            which units are in layer L
            what about layer L
            and layer L
            is layer L as a whole worse than its best head
            is the whole layer L worse than the best unit of it
        """,
        "shared": """
            which units share the flips of U
            which other units flip the same records as U
            which units overlap with U
            do other units flip the same as U
            who else flips the records of U
            which units are similar to U
            is U redundant with other units
            which neurons share these flips
            what else flips those records
            are there units which break the same records as U
            is there another unit like U
            what units break the same sums as U
            does any other neuron do the same as U
        """,
        "controls": """
            what do the controls of U say
            does U flip more than random units
            is U better than random
            how many random units was U compared with
            was U compared with random units
            did you control for chance with U
            how does U compare with random units
            how many control units are beside U
            did anybody check U against random units
            what is the rank of U among random units
            does U beat other units of its layer
            was U checked against random units
            how many random units did U beat
            were controls run for U
            what was U compared to
            is U stronger than a random neuron
            is U special compared with other units
            is U unusual among the units
            are other units as strong as U
            how many other units are as strong as U
        """,
        "mind": """
            what would change your mind about U
            how could I refute U
            what would falsify U
            how can the claim about U be disproved
            what would be a counterexample to U
            what would it take to refute U
            what evidence would make you drop U
            how would one disprove U
            what would speak against U
            what test could U fail
            what would convince you that U is wrong
            what would prove you wrong about U
        """,
        "how": """
            how was U found
            how did the search find U
            how did you find U
            was U tested alone
            was U tested on its own or in a group
            when did the search test U
            what is the attribution rank of U
            where does U rank by attribution
            how did you come to U
            in which group was U
            has U been tested individually
            how did you discover U
            was U ever tested by itself
            how did U come up
            how was U identified
            was U found by attribution
            why was U tested
            which test found U
            was U tested individually or in a group
            at what point was U found
            who found U
            when was U tested
            in which order was U tested
        """,
        "why-not": """
            why not U
            why is U not an agonist
            why was U pruned
            why was U ruledout
            why was U not found
            why did the search miss U
            why is U not in the list
            why is U missing
            why is U not among the results
            why does U not matter
            why was U excluded
            what is wrong with U
            why does U never flip
            was U ruledout
            why isn't U important
            is U not important
            why did you throw out U
            why is U not important
            is U irrelevant
            what speaks against U
            U was ruledout why
            why did U fail
            why did you reject U
            why is U not a result
            does U not matter
            how come U is not there
            why isn't U an agonist
            why does U not count
            what happened to U
            is U unimportant
            why didn't you find U
            what keeps U from being an agonist
        """,
        "verify": """
            prove it
            prove
            prove U
            verify U
            verify it
            verify that
            check it again
            rerun it
            can you confirm that
            re-run the certificate of U
            prove that again
            replay it
            show that it is true
            can you prove it
            prove the claim
            do you have proof
            is it true
            check the last answer
        """,
        "weakest": """
            what is the weakest claim
            which finding is the weakest
            which claim is least supported
            which claim should I trust least
            what is the most doubtful result
            where are you least sure
            which result is shaky
            what is the weakest point
            which of your claims is the shakiest
            what would a critic attack first
            what is your least certain finding
            where is the evidence thin
            what is the most questionable claim
        """,
        "missed": """
            what did the search miss
            what did you miss
            how complete is the search
            how many units did the search overlook
            could there be other units
            is there a third one
            how do you know there is no other unit
            are there more agonists
            did you test every unit
            were all units tested alone
            did you find all of them
            is anything missing
            how can you be sure that there are no more
            what was not found
            which units did the search miss
            did the search overlook something
            might there be more units that you did not find
            is the list complete
            were all units tested individually
            how many agonists are still hidden
            could you have missed a unit
            are you sure you found all
            is that all of them
            are there any others
            what about units that were never tested
            was everything tested
            are there further agonists
            have you tested all the neurons
            what if something was overlooked
            how sure are you that there are only these
            are these the only ones
            could other units matter too
            is there anything else
            how do you know these are all
        """,
        "rank": """
            is U the strongest unit
            is U the strongest
            is U the best one
            is U the most important unit
            is U the one that matters most
            is there anything stronger than U
            is U number one
            is U the top unit
            is any unit stronger than U
        """,
        "rule": """
            what is the rule of U
            what is its rule
            does U have a rule
            which rule describes U
            rule of U
            give the rule for U
            what rule predicts the flips of U
            is there a rule for U
            can the flips of U be described by a rule
            and its rule
            is there a rule that describes U
            which rule tells when U flips
            what pattern does U follow
            formula for U
            in words the rule of U
            can you say with a rule when U flips
            did you find a rule for U
        """,
        "ablate": """
            what happens if U and U are ablated together
            ablate U and U
            what happens when both U and U are removed
            remove U and U together
            joint ablation of U and U
            do U and U interact
            is there an interaction between U and U
            do they back each other up
            are U and U redundant
            do U and U compensate for each other
            is the joint effect larger than the sum
            what if both are removed at the same time
            U and U at the same time
            do they interact
            is one a backup of the other
            how many flip when both are ablated
            is there synergy between U and U
            ablate U together with U
            what does it do to remove both U and U
            what if both U and U are missing
            do U and U back each other up
            are they independent
            is the effect of U and U additive
            what happens without U and U
            is there redundancy between U and U
            the combination of U and U
            combined effect of U and U
            what if I ablate U and U at once
            what happens if U and U are both off
            how many records do U and U flip together
            effect of ablating U and U
            ablate all agonists together
            remove both agonists at once
            what happens when all agonists are removed
            what if both agonists are ablated
            joint effect of the agonists
        """,
        "rules": """
            which rules were found
            list the rules
            which rules are there
            show the rules
            what are the rules
            rules
            which rule is the best
            rules in general
            show all rules
            give me the rules
            what rules did you learn
            what rules describe the flips
            table of rules
            which rule can be checked before the model answers
            what is the best rule of all
            rules with their scores
        """,
        "evidence": """
            which certificates are there
            list the certificates
            how many certificates are stored
            show the certificates
            what evidence is stored
            list all certificates
            what is the evidence
            where is the evidence
            which proofs are stored
        """,
        "slices": """
            how large are the slices
            what are the slices
            which slices were used
            how many records are in the slices
            size of D+ and D-
            how big are D+ and D-
            how many records are in D+
            show the slices
            what is in D-
            examples from D+
            how many examples do the slices contain
            how many records does each slice have
            slice sizes
            how were the slices drawn
            what records are in the slices
            what does D+ contain
            how many train records lie in D+
            how many train records are in D-
            how many records fall in D+ and D-
        """,
        "hypotheses": """
            which hypotheses are in the ledger
            list the hypotheses
            what was registered before
            which predictions were registered
            was any hypothesis refuted
            what hypotheses were tested
            was anything preregistered
            which hypotheses were supported
            what predictions did you register beforehand
            did any registered hypothesis fail
            was there a preregistration
            which hypotheses were refuted
            what did you predict before testing
            were there registered predictions and did they come true
            did the registered prediction hold
            which prediction was made before
            was the prediction confirmed
        """,
        "compare": """
            compare with run R
            compare R
            how does it differ from run R
            what changed since run R
            compare this run with R
        """,
        "define": """
            what does T mean
            what is T
            what is a T
            what is meant by T
            T
            define T
            explain T
            explain what T is
            what does the word T mean
            definition of T
            what do you mean by T
            meaning of T
            what T means
            T in plain words
            what is T in simple words
            what does T stand for
            explain T to a student
            I do not understand T
            what are T
            T ?
            what exactly is T
            whats T
            can you explain T in simple words
            what is the meaning of T
            what does T stand for
            what does T mean here
            what is T supposed to be
            how is T defined
            how do you define T
            please explain the term T
            is T a number
            what are T exactly
            I don't get T
            what is this T
            tell me what T is
            what do you call T
        """,
        "model": """
            which model is it
            what model was tested
            which network did you analyse
            name of the model
            how large is the model
            how many layers does the model have
            how many units per layer
            how many neurons are there in the model
            how many units does a layer have
            size of the model
            what is the hash of the model
            how many units in all
            how many layers
            how wide is a layer
            how big is this model
            how many units in total
            how many neurons has the network
            what is the model called
            which transformer
            model name
            architecture of the model
            how deep is the model
            in which layer is it
            what did you analyse
            which network
            how many neurons per layer
            how many neurons does each layer have
        """,
        "task": """
            what is the task
            what was the model asked to do
            what is it about
            which task was it
            what does the model have to do
            which behaviour was studied
            what kind of problems does the model solve
            task description
            what counts as a right answer
            what behaviour did you study
            what did the model have to do
            what is being tested
            what is the model supposed to do
            what are the problems about
            what domain
            what kind of task is it
            what sort of sums
            how is success defined
            when does an answer count as right
            how do you define success
            what did you measure
        """,
        "accuracy": """
            how accurate is the model
            what is the accuracy
            how good is the model
            how often is the model right
            how many problems does the model get right
            how many answers are correct
            accuracy by operator
            is the model better at C or C
            how well does the model do on C
            accuracy on C
            how accurate is the model on C
            does the model make more mistakes on C
            how many C are right
            what share does it solve without ablation
            performance of the model unablated
            how well does the model perform
            is the model worse on large numbers
            accuracy on held-out records
            baseline accuracy
            success rate
            how many does it get wrong
            error rate
            task score
            what percentage of the sums is solved correctly
            how many errors does the model make without any intervention
            hit rate
            is it better at C than at C
            can the model do C
            how many records does the model solve
            how many mistakes does it make
            does the model do C well
            how good is it at C
            which is harder C or C
            is C harder than C
            what score did the model get
            how often does it fail
            how well does it calculate
            how reliable is the model
            base rate of success
            how often is the unablated model right
            percentage correct
            how often is it right on C
            how often is the model right on C
            how many C does the model get right
            are C harder than others
            right on C
            success rate on C
            how many sums does it get right
            how well does it do without ablation
            before ablation how accurate is it
            what is the score
            is the model any good
            is it good at C
            does it struggle with C
            how many of the C are wrong
        """,
        "failures": """
            which records does the model fail on by itself
            show a problem that the model gets wrong
            what does the model get wrong without any ablation
            example of an unablated mistake
            which sums does the model get wrong
            give me some wrong answers of the intact model
            where does the model fail with nothing ablated
            show failures of the original model
            list mistakes the model makes on its own
            which problems are too hard for it
            example of a mistake of the intact model
            which sums does the model fail without ablation
            give me a problem which the model cannot solve
            a sum that it cannot do
            where is the model wrong to begin with
            which problems were already wrong
            wrong even unablated
            what mistakes does the model make
            show errors of the unablated model
            which additions does the model get wrong
        """,
        "records": """
            how many records are there
            how many problems was the model tested with
            how many examples were used
            how many prompts did you use
            how big is the dataset
            how many records were held-out
            how many train records
            how many records are in the test split
            number of records
            sample size
            how many questions were asked overall
            how was the data split into train and held-out
            how many data points
            size of the data set
            how many were held-out
            how many training examples were used for the analysis
            how many prompts in the experiment
            how much data
            how many sums were tested
            how large is the sample
            how many train and how many test records
            on how many examples was the model tested
            how many items
            how many were used for training and how many for testing
            what share was held-out
        """,
        "range": """
            which range of numbers is asked
            how large are the numbers
            what numbers occur
            what is the largest operand
            smallest and largest number
            up to which number does it go
            which numbers does the model have to handle
            from where to where do the operands go
            number range
            how big can the operands be
            what is the biggest number in the problems
            how big are the numbers
            how many digits do the numbers have
            maximum operand
            are the numbers small or large
            upper limit of the numbers
        """,
        "operators": """
            which operators are asked
            can it do multiplication
            can the model multiply
            can it divide
            does the model do division
            what about multiplication and division
            which operations were tested
            does it also multiply
            was division tested
            is it only addition
            are there multiplications
            which operators
            addition or subtraction
            does it multiply
            is division included
            only additions
            what operations does the model do
            are there divisions too
            is multiplication part of the task
            plus and minus only
            which kinds of calculations were asked
        """,
        "prompt": """
            what does a prompt look like
            show a prompt
            how is a question worded
            what is the template
            what is the input format
            give an example prompt
            how are the problems written
            format of the prompts
            what exactly is typed into the model
            sample input
            what text goes into the model
            how is the input formatted
            what does the model see
            how does the model get the question
            what does the input look like
            how was the model prompted
            exact wording of the prompt
            few-shot or zero-shot
        """,
        "basis": """
            what kind of unit is tested
            is it a neuron or an attention head
            are these MLP neurons or attention heads
            which basis was used
            did you test attention heads
            were attention heads searched
            what counts as a unit
            which parts are ablated
            are the units MLP channels
            did you look at attention too
            what type of component is it
            in which part of the network are the units
            what are the units physically
            did you also analyse attention heads
            are these MLP neurons
            what does unit mean here
            which parts of the model were searched
            do you mean neurons or heads
            what about attention heads
            residual stream or hidden layer
            which components were considered
            is it in the MLP or in attention
            what do m and a stand for in unit names
        """,
        "baseline": """
            what is a unit replaced with
            what is the baseline
            which baseline was used
            what did you set the unit to
            which value replaces the ablated unit
            how was the unit ablated
            what does switching off mean exactly
            why not zero ablation
            why did you not set it to zero
            was it zero or mean ablation
            how is a neuron switched off
            which replacement did you use
            why mean ablation
            why the mean
            which value is put in when a neuron is ablated
            how is ablation done
            zero or mean ablation
            what did you put in place of the value of the unit
            what value does a switched off unit have
            how exactly was the unit removed
            with what was the activation replaced
            was it set to zero
            what kind of ablation
            which type of ablation was used
            what is inserted instead of the activation
            why was zero not used
        """,
        "other-baseline": """
            does it hold with another baseline
            does the effect survive a different replacement
            was a second baseline tried
            does it depend on the baseline
            what happens with mean ablation instead
            is it robust to the choice of baseline
            same result under another replacement
            robustness to the baseline
            would another replacement give the same result
            does the result depend on the replacement
            what if you had used a different baseline
            how robust is it to the ablation method
            is the effect still there with the mean as baseline
            if I use another baseline does it survive
            do the agonists hold with a second baseline
        """,
        "in-range": """
            are the replaced values out-of-range
            are the replacement values out-of-distribution
            is the ablation off distribution
            are the replacements realistic
            how many values are out-of-range
            do the replaced values occur naturally
            are the replacements in range
            do the replaced values leave the normal range
            are the replaced values unusual
            is the model pushed off-distribution by the ablation
            are these natural activations
            is the replacement value realistic
            does the replacement make sense
            were values out-of-range
            how many replaced values are outside the data
        """,
        "phase": """
            where are units ablated
            at which positions are units replaced
            which phase
            is the prompt ablated too
            at which tokens was the unit ablated
            during the prompt or during generation
            was the ablation applied while reading the prompt
            when in the text is the unit switched off
            is the neuron switched off while reading the prompt or while writing
            at what time is the unit ablated
            which token positions
            at which step of the generation
            only at generated tokens
            is the whole prompt affected
        """,
        "seed": """
            what is the seed
            which random seed
            seed
            was more than one seed tried
            did you repeat it with other seeds
            how many seeds
            does it depend on the seed
            was the run repeated with a different seed
            random seed
            is it stable over seeds
            was it done several times
            how many repetitions
            did you run it more than once
        """,
        "thresholds": """
            which thresholds were set
            what are the settings
            what is the value of τ
            how large is α
            how high is the threshold
            which significance level
            which parameters did you use
            how big is ε
            what threshold was used
            configuration
            hyperparameters
            which threshold did you choose
            what were the hyperparameters
            which α was used
            what confidence level was used
            which settings did the run use
            how did you set τ
            what cutoff
            what are τ and ε and α
            why was τ chosen so
            what threshold was used for an agonist
            what is the threshold for an agonist
            when is a unit an agonist here
            significance level
        """,
        "splitter": """
            what is the splitter rule
            which rule separates D+ from D-
            how are D+ and D- defined
            how were the slices split
            how good is the splitter
            what is the MCC of the splitter
            what is the difference between D+ and D-
            what distinguishes D+ from D-
            what splits the records
            why this splitter
            on what is the split based
            how do you decide what is D+
            how did you divide the data in D+ and D-
            what is the rule that defines D+
            how accurate is the splitter
            how was the data divided
            what are D+ and D- here
            when is a record in D+
            which records belong to D+
            how do D+ and D- differ
            rule for the slices
            where does the splitter come from
            is the splitter any good
        """,
        "proposer": """
            was a language model involved
            did an LLM propose the rules
            was an LLM used
            was GPT or Claude used
            who proposed the predicates
            where do the predicates come from
            how many predicates were proposed
            how many predicates were kept
            is any AI involved in the results
            were the explanations written by a language model
            did ChatGPT make this up
            did an AI write these rules
            how many predicates survived
            how many predicates were refused
            were predicates made by a language model
            is this generated by ChatGPT
            did you use any language model
            where did the rules come from
            how many of the predicates were ruledout
            how many predicates were refused or kept
        """,
        "versions": """
            which versions was it made with
            what software was used
            which version of torch
            which libraries
            on which hardware did it run
            was a GPU used
            cpu or gpu
            which machine
            software versions
            did it use a GPU
            which torch was used
            what hardware was needed
            what environment was used
            which precision
            float32 or bfloat16
            python packages
            which processor
            what computer was it run on
        """,
        "number-of-units": """
            how many units matter
            how many agonists are there
            how many neurons were found
            number of agonists
            how many of the units reach the threshold
            how many units are important
            how many are localized
            how many units are above the threshold
            how many did you find
            how many neurons are responsible
            count the agonists
            number of neurons that matter
            how many agonists did the search turn up
            how many of them are there
            how many important units
            how many neurons cause the answer
            is it one neuron or many
            how many units were found overall
            how many units have been ruledout
            how many units were tested overall
            how many units flip nothing
            how many units do not matter
            out of how many units
            how many units are there and how many matter
            how many
            how many units did the search find
            how many units reach τ
            out of how many
        """,
        "not-ruled-out": """
            which units are not ruledout
            list the units that are not ruledout
            which units are localized but no agonists
            how many are not ruledout
            which other units might matter
            which units are borderline
            which candidates remain
            which units almost reach the threshold
            which neurons could still matter
            which units can't be excluded
            what are the borderline cases
            which units remain possible
            which other candidates are there
            which are only localized
            list the localized units
            which units are undecided
            which units have only an upper bound above τ
        """,
        "layers": """
            which layer matters most
            which layer is the strongest
            in which layer are the units
            which layer is the most important
            is the first layer or the last layer more important
            compare the layers
            effect of whole layers
            where in the network are the agonists
            which layers matter
            do both layers matter
            which of the layers is most important
            in which layer do the agonists sit
            where do the units sit
            first layer or second layer
            early or late layers
            are the units early or late
            how are the units spread over the layers
            which layer breaks most
            does any layer as a whole reach τ
            how many records does each layer flip
            which layer is less important
            is the first or the second layer more important
            which of both layers
            are both agonists in the same layer
        """,
        "groups": """
            which groups were pruned
            how many groups were pruned
            show the pruned groups
            which groups of units were tested
            what was pruned
            how many units were pruned in groups
            which units were discarded together
            groups that were ruledout
            what groups did the search prune
            which groups did you throw out
            what was thrown away
            how large were the pruned groups
            which units were pruned together
        """,
        "attribution": """
            which units rank highest by attribution
            what is the top unit by attribution
            attribution ranking
            which unit has the highest EAP-IG score
            what does attribution say
            best units by attribution score
            does attribution agree
            which units did attribution rank first
            who is first in the attribution ranking
            ranking of units by attribution
            which units were tested first
            what are the top candidates
            attribution scores
        """,
        "search-kind": """
            which kind of search was it
            which search algorithm was used
            was it a guided or a cha search
            how did the search work
            was it exhaustive or guided
            which search method
            how were the units searched
            how does the search find units
            which method was used
            method
            how did the search go about it
            what search method did you use
            how do you find the units
            explain the search
            which strategy did the search use
            how does the method work
            how were the agonists found
            what algorithm is it
            what approach did you take
            where did first-order rank the agonists
            at which rank did the search meet the agonists
            did first-order predict which units matter
            what ordered the tests
        """,
        "cost": """
            what did the search cost
            how many ablations were needed
            how many forward passes did it take
            how expensive was the search
            how many queries were asked
            how many group ablations
            how much cheaper than testing every unit
            computational cost
            how much compute
            how many example forwards
            was it cheaper than brute force
            how efficient is the search
            how many ablations did the search run
            how many model calls were necessary
            how many tests were made
            how much work was it
            how much did the search save
            number of ablations
            how costly
            number of queries
            how many runs of the model
            how many evaluations
            what fraction of the exhaustive cost was it
            how many times was the model run
            how many ablated completions
            number of forward passes
            was it worth searching
        """,
        "time": """
            how long did it take
            how long did the run take
            runtime
            wall clock
            how many seconds did the search need
            how much time did it need
            how fast was it
            which stage took longest
            duration of the run
            how much time did the whole thing take
            how long did the search take
            how long does it run
            was it fast
            how many minutes
            what took the most time
            time needed
        """,
        "chance": """
            could the results be chance
            could this be chance
            is this just chance
            is it statistically significant
            are the results significant
            is this significant
            is that just luck
            are the findings noise
            how do you know it is not random
            do the units beat random units
            were random units tested as controls
            is it a coincidence
            can random units do the same
            what are the p-values
            how likely is it that this is a fluke
            did you run controls
            what about false positives
            how many controls were drawn
            how do I know that it is not random
            is this a fluke
            are these real effects
            how significant are the results
            were there controls
            is it better than random
            how do random units compare
            could random neurons have the same effect
            could these be false positives
            how sure are the results
            were the units compared with random ones
            how do you know this is not chance
            is it significant
            would random neurons do the same
            are these units better than random ones
        """,
        "corrected": """
            was it corrected for multiple comparisons
            did you correct for multiple testing
            was a correction applied
            are the p-values corrected
            how did you deal with testing so many units
            is there a Bonferroni correction
            did you use Holm or Bonferroni
            you tested many units so some are significant by chance
            familywise error
            multiplicity
            many units were tested is that accounted for
            which multiple testing correction did you apply
            is that taken into account
            did you adjust the p-values
            are the bounds corrected for the number of units
            how do you handle multiple testing
            look-elsewhere effect
            what about multiple comparisons
            did you adjust for testing all the units
        """,
        "rules-shown": """
            how many rules are shown
            how many rules were learned and how many survived
            which rules are not shown and why
            how many rules passed
            how many rules failed
            which rules were rejected
            why are some rules not shown
            how many rules are significant
            how many rules were tried
            how many rules predict held-out flips
            which rules did not hold
            how many of the rules hold up
            why are some rules left out
            which rules survived
            which rules did not make it
            how many rules are there overall and how many are good
            how many rules were learned
            what happened to the other rules
            which rules are supported
            which rules were dropped and why
        """,
        "selective": """
            which units are selective
            are the units selective
            how many units are selective
            is any unit selective
            do the units flip more on D+ than on D-
            are they specific
            are any of them selective
            which of them are selective
            is there a selective unit
        """,
        "overlap": """
            do the units flip the same records
            how much do the units overlap
            do the agonists break the same sums
            what is the Jaccard index
            how many records are flipped by at least one unit
            union of the flips
            are the units redundant
            how many records do all units together flip
            do the found units share flips
            do the agonists flip different records
            how similar are the agonists
            is there overlap between the units
            how many records depend on any of the units
            how many sums do they break together
        """,
        "limits": """
            what are the limits
            what are the limitations of this study
            what are the caveats
            what can this not show
            does it generalise
            what should I be careful about
            what does this not prove
            threats to validity
            what does the run not say
            how far can I trust this
            can I trust the results
            weaknesses of the method
            are the estimates biased
            what is the catch
            any caveats
            what can't I conclude from this
            what are the weaknesses of this analysis
            what can I not conclude
            what are the problems with this study
            how general are the results
            what does it not show
            is there anything to be careful about
            what would a reviewer criticise
            how reliable are the results
            can this be generalised
            what assumptions are made
            will it hold elsewhere
            do the results carry over
            are the strengths biased
            is there a bias
            is the estimate too optimistic
            winner's curse
            what is not shown
            what remains open
            what does this leave open
            does it hold for other tasks and models
        """,
        "cause": """
            does this prove that a unit causes the answer
            is this causal
            is it correlation or causation
            does the unit compute the answer
            is the unit sufficient
            are the units sufficient
            is the unit necessary or sufficient
            is that causal evidence
            does U cause the answer
            is U sufficient
            does it follow that the neuron does the calculation
            does this show causation
            does ablation prove causality
            can we conclude that this neuron does the arithmetic
            is the neuron sufficient for the right answer
            is it causal or only correlated
            does the model really use this unit to add
            can one say that the neuron computes the sum
            is this evidence of causation
            necessary or sufficient
            does it mean that this neuron does addition
            does it prove that the neurons are responsible
            are the neurons the cause of the right answer
            is this proof that the model uses it
        """,
        "check": """
            how can I reproduce this
            how can I check this
            how can I verify the results
            how could somebody else check this
            how do I know that you did not make this up
            is it reproducible
            how can I replicate it
            how can the results be verified independently
            which command verifies it
            why should I believe you
            how can a reviewer check this
            can I rerun this on another machine
            how to export the evidence
            why should I trust you
            how do I replicate your numbers
            can I check it on my computer
            how do we know you are not making this up
            how could someone check this who does not believe you
            how do I run it again
            how can this be tested by others
            where can I see the proof
            how can a third party verify
            can the results be repeated
            how to verify
            steps to reproduce
            how to trust these numbers
            how can I be sure this is true
            how was this verified
            how would I verify a certificate
            can anyone check
            where are the certificates to verify
        """,
        "next-steps": """
            what should be done next
            what next
            next steps
            what would you do next
            which experiment should I run now
            what is still to do
            how can I make the result stronger
            what would settle it
            what further experiments
            how could this be improved
            what do you recommend
            which analysis would help
            what would be a good follow-up experiment
            what should I run next
            what follow-up do you suggest
            what could be done better
            which experiment is missing
            what can I do to be more certain
            what would you try next
            any suggestions
            how to go on
        """,
        "training": """
            what data was the model trained on
            how was the model trained
            what is the training data of the model
            which dataset was used to train it
            how long was the model trained
            what was the training loss
            does U still matter after fine-tuning
            what happens when I fine-tune the model
            when did U emerge during training
            at which training step did U appear
            will it change with more training
            who trained the model
            did the model learn this from textbooks
            which optimizer was used
            what is the learning rate
            how was the neuron learned
            at what point in training does it appear
            what was the loss
            how many epochs was it trained
            will U survive fine-tuning
            has the model seen these sums in training
            was the model trained on these problems
            what is the optimizer
        """,
        "elsewhere": """
            and for another model
            does it hold for other models
            is it the same in GPT-2
            is it the same in larger models
            what about Llama
            does GPT-4 have such neurons
            which neurons matter in SmolLM2
            is there a U in another model
            do bigger models do the same
            does U exist in GPT-4
            how does it compare with GPT-4
            would it work in Pythia or Gemma or Qwen or Mistral
            do other models have U
            is this true for ChatGPT
            does a bigger model have the same units
            do all transformers do this
            would the same happen in another network
            compare with GPT-2
            how does Llama do it
            is this model better than GPT-4
            what does U do in Llama
        """,
        "other-tasks": """
            does it hold for other tasks
            is U involved in language
            does U matter for translation
            is U involved in refusing harmful requests
            does U store facts
            does U do multiplication
            does U handle division
            is U used for grammar
            does U matter for code
            what does U do in English text
            is U toxic
            does U know about sentiment
            does the unit matter for other languages
            can it write poems
            does U multiply
            does U encode colour
            is U responsible for hallucinations
            does U help with French
            what else does U do outside arithmetic
            is U about gender or bias
            is U a safety neuron
            does the model know geography
            is the model biased
            is U involved in lying
            can the model speak German
            does U do square roots
        """,
        "people": """
            do children make the same mistakes
            do humans calculate like this
            is it like the human brain
            does the brain have such neurons
            do people make the same errors
            is this how students add
            is U conscious
            does the model understand numbers
            does U think
            is the model intelligent
            does the brain work like this
            how do pupils learn this at school
            does the neuron dream
            does the model think
            is the model conscious
            does it feel
            is this how the human brain adds
            who invented addition
        """,
        "money": """
            what did the electricity cost
            how much money did it cost
            how much energy was used
            what is the carbon footprint
            how many dollars
            how many euros did the run cost
            how much power did the machine use
            how much CO2
            what is the price in dollars
            how much did the machine cost
            how much CO2 was emitted
            electricity bill
            what does it cost per token
            cost of the GPU in dollars
            is it profitable
        """,
        "bounds": """
            what is the confidence interval of U
            what is the lower bound of U
            what are the bounds of U
            error bars for U
            95 % interval of U
            what is the upper bound of U
            confidence interval for the strength of U
            what is the uncertainty of U
            how precise is the estimate for U
            how much could the strength of U vary
            is the strength of U really above τ
            is U significantly above the threshold
            how uncertain is the flip rate of U
            lower confidence bound of U
            between which values lies the strength of U
        """,
        "held-out": """
            how many held-out records does U flip
            how many flips on the held-out records
            does U hold on unseen records
            is U confirmed on held-out records
            how does U do on held-out records
            does the effect of U replicate on held-out data
            does U generalise to new records
            how many unseen sums does U break
            does U also flip records that did not choose it
            test set flips of U
            how many flips of U are in the test split
        """,
        "unit-rules": """
            how good is the rule of U
            what is the MCC of the rule of U
            how accurate is the rule of U
            state the input rule of U
            what is the input rule of U
            which rules were learned for U
            what is the p-value of the rule of U
            is the rule of U significant
            do trees predict U better than the rule
            how well does the rule of U predict held-out flips
            MCC of the input rule of U
            is the rule of U better than chance
            what is the anchored rule of U
            what is the mechanism rule of U
            how do free-form trees do on U
            does the rule of U hold on unseen records
            is the rule of U shown
            was the rule of U accepted
            how good is the rule that only reads the prompt
            is there a rule that reads the prompt alone
            does the rule read only the input
            why has U no rule
            is there a rule for U that holds
            why is the rule of U not shown
            what went wrong with the rule of U
            how many rules has U
            is the rule of U any good
        """,
        "unit-baseline": """
            does U flip with another baseline
            does the effect of U survive another baseline
            are the values of U out-of-range
            does U depend on the baseline
            is U robust
            is U robust to the replacement
            how many records does U flip with mean ablation
            are the replaced values of U out-of-distribution
            what if U is replaced by something else
            does U still flip under a different replacement
            second baseline for U
            U with baseline mean
            is the effect of U still there with another baseline
            does U survive another baseline
        """,
        "directions": """
            which direction of flips was searched
            did you also search 0→1
            were wrong answers repaired by any unit
            does any unit repair wrong answers
            did you look for units that fix mistakes
            are there units whose ablation improves the model
            does removing a neuron make the model better
            are there units that hurt the model
            only 1→0
            both directions
            did any ablation correct a wrong answer
            can ablation fix errors
        """,
        "generation": """
            how does the model write its answers
            how many tokens are generated
            what is the stop token
            when does the model stop writing
            is the decoding greedy
            sampling or greedy decoding
            what temperature was used
            how many tokens at most
            are there few-shot examples in the prompt
            was it few-shot or zero-shot
            maximal length of the answer
        """,
        "origin": """
            which run is it
            what is the run id
            what is the name of the run
            when was the run made
            when was it done
            what date is the run from
            which run am I looking at
            how old is this run
        """,
        "rounding": """
            could rounding change the results
            are the results the same on another processor
            do numerical errors matter
            is it deterministic
            floating point errors
            how close are the completions to a tie
            are there ties
            how many completions are near ties
            would another machine give other answers
        """,
        "choices": """
            where does the run differ from the paper
            how does this differ from the paper
            what did you do differently from the paper
            which choices were made
            is it the method of the paper
            deviations from the paper
            what choices does the paper leave open
            is this the original algorithm
        """,
        "recall": """
            what is the recall of the search
            how many of the exhaustive agonists did the search find
            what share did the search find
            was pruning safe
            did any group hide a stronger unit
            how many localized units did the search miss
            is pruning safe
            how good is the search
            did the search find the same as brute force
            compare the search with testing every unit
            sensitivity of the search
            false negatives of the search
        """,
        "successes": """
            which records does the model get right
            show a problem that the model gets right
            an example of a correct answer
            give me a sum that it can do
            example of a right answer without ablation
            problems which the model solves
            show some correct answers of the intact model
            what can the model do
        """,
        "makers": """
            who wrote this
            who wrote this program
            who made you
            who are the authors
            who is the author of the paper
            which university did this
            who discovered it
            who developed the model
            what is the licence
            is the code open source
            how do I cite this
            who owns the model
            who are you
        """,
        "help": """
            help
            what can I ask
            what can you do
            what questions can you answer
            what do you know
            how do I use this
            commands
            what sort of questions can I ask
            what else can I ask
            how does this work
            what can I do here
            list the questions
            show the possible questions
        """,
        "instead": """
            what about U
            and U
            how about U
            and U on those
            and for U
            U instead
            and what about U then
            same for U
        """,
    }.items()
}
"""By kind."""
