"""Plain English that is none of any task: what gates and units do to other text is measured on it."""

PARAGRAPHS = (
    "The ferry left the harbour a little after six, when the fog had thinned enough to show the "
    "outline of the breakwater. Most of the passengers stayed below and drank coffee from paper cups.",
    "A good loaf needs time more than anything else. The dough should rest under a damp cloth until "
    "it has doubled, and the oven must be hot before the bread goes in.",
    "When the committee met again in March, nobody remembered who had asked for the report. It was "
    "filed with the others and the discussion moved on to the roof of the library.",
    "The river changes its bed every few years. Farmers on the eastern bank have learned to plant "
    "nothing that they could not bear to lose, and to keep their tools on the hill.",
    "She tuned the old piano by ear, one string at a time, listening for the slow beating that tells "
    "two notes apart. By evening the room sounded as it had when her grandmother played.",
    "Copper conducts electricity well because its outer electrons are free to move through the metal. "
    "Heating the wire makes the atoms shake, and the electrons are scattered more often.",
    "The museum keeps its smallest treasure in a drawer: a button from the coat of a sailor who never "
    "came home. Visitors who ask are allowed to hold it for a moment.",
    "Swifts spend almost their whole lives in the air. They eat, drink and sleep on the wing, and "
    "come to rest only when there are eggs to be kept warm.",
    "Our neighbour repairs bicycles in his garage and takes no money for it. He says that a machine "
    "which can be understood by looking at it deserves to be kept alive.",
    "The first version of the program was finished in a weekend and took two years to correct. What "
    "it lacked was not speed but a clear idea of what it was for.",
    "In winter the village empties, and the few who stay light their stoves early. Smoke rises "
    "straight up on the coldest days and can be seen from the other side of the valley.",
    "The judge read the letter twice before she answered. There was nothing in it, she said, that a "
    "person of ordinary patience could not have settled over dinner.",
)
"""Written for this package."""
