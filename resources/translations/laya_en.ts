<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>ChatPage</name>
    <message numerus="yes">
        <source>%n turn(s)</source>
        <translation>
            <numerusform>%n turn</numerusform>
            <numerusform>%n turns</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>OverflowBar</name>
    <message numerus="yes">
        <source>%n older turn(s) are no longer sent to the model: {0}</source>
        <translation>
            <numerusform>%n older turn is no longer sent to the model: {0}</numerusform>
            <numerusform>%n older turns are no longer sent to the model: {0}</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>_Foot</name>
    <message numerus="yes">
        <source>%n answer(s) are being written.</source>
        <translation>
            <numerusform>%n answer is being written.</numerusform>
            <numerusform>%n answers are being written.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>_Words</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>busy · %n stream(s)</source>
        <translation>
            <numerusform>busy · %n stream</numerusform>
            <numerusform>busy · %n streams</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n answer(s)</source>
        <translation>
            <numerusform>%n answer</numerusform>
            <numerusform>%n answers</numerusform>
        </translation>
    </message>
</context>
</TS>
